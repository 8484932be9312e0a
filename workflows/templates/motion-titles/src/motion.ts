import {Easing, interpolate} from "remotion";

// 0 to 1 over the first `length` frames after `from`, slower towards the end.
export const enter = (frame: number, from: number, length: number): number =>
  interpolate(frame, [from, from + length], [0, 1], {
    easing: Easing.out(Easing.cubic),
    extrapolateLeft: "clamp",
    extrapolateRight: "clamp",
  });

// 1 to 0 over the last `length` frames of a film of `total` frames.
export const leave = (frame: number, total: number, length: number): number =>
  interpolate(frame, [total - 1 - length, total - 1], [1, 0], {
    easing: Easing.in(Easing.cubic),
    extrapolateLeft: "clamp",
    extrapolateRight: "clamp",
  });
