import React from "react";
import {AbsoluteFill, useCurrentFrame, useVideoConfig} from "remotion";
import {colours, type Card} from "./cards";
import {enter, leave} from "./motion";
import {fitted, text} from "./style";

export const TitleCard: React.FC<{card: Card}> = ({card}) => {
  const frame = useCurrentFrame();
  const {width, height, durationInFrames} = useVideoConfig();
  const rise = enter(frame, 0, 18);
  return (
    <AbsoluteFill
      style={{
        alignItems: "center",
        backgroundColor: colours.background,
        justifyContent: "center",
      }}
    >
      <div
        style={{
          opacity: leave(frame, durationInFrames, 10),
          textAlign: "center",
          width: width * 0.84,
        }}
      >
        <h1
          style={{
            ...text,
            fontSize: fitted(card.title, height * 0.13, 18),
            fontWeight: 700,
            opacity: rise,
            transform: `translateY(${(1 - rise) * height * 0.05}px)`,
          }}
        >
          {card.title}
        </h1>
        <div
          style={{
            backgroundColor: colours.accent,
            height: height * 0.01,
            margin: `${height * 0.035}px auto`,
            width: width * 0.24 * enter(frame, 8, 18),
          }}
        />
        <p
          style={{
            ...text,
            fontSize: fitted(card.subtitle, height * 0.06, 48),
            opacity: enter(frame, 14, 16),
          }}
        >
          {card.subtitle}
        </p>
      </div>
    </AbsoluteFill>
  );
};
