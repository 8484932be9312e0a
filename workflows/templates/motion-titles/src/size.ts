import {cards} from "./cards";

export const fps = 25;
export const width = 1280;
export const height = 720;

// The length of a card in frames, at least one.
export const framesOf = (id: string): number =>
  Math.max(1, Math.round(cards[id].seconds * fps));
