import React from "react";
import {AbsoluteFill, useCurrentFrame, useVideoConfig} from "remotion";
import {colours, type Card} from "./cards";
import {enter, leave} from "./motion";
import {fitted, text} from "./style";

export const LowerThird: React.FC<{card: Card}> = ({card}) => {
  const frame = useCurrentFrame();
  const {width, height, durationInFrames} = useVideoConfig();
  const shown = enter(frame, 0, 16) * leave(frame, durationInFrames, 10);
  return (
    <AbsoluteFill style={{backgroundColor: colours.background}}>
      <div
        style={{
          borderLeft: `${height * 0.014}px solid ${colours.accent}`,
          bottom: height * 0.1,
          left: width * 0.07,
          maxWidth: width * 0.8,
          opacity: shown,
          paddingLeft: height * 0.035,
          position: "absolute",
          transform: `translateX(${(shown - 1) * width * 0.05}px)`,
        }}
      >
        <p style={{...text, fontSize: fitted(card.title, height * 0.075, 32), fontWeight: 700}}>
          {card.title}
        </p>
        <p style={{...text, fontSize: fitted(card.subtitle, height * 0.045, 60), opacity: 0.85}}>
          {card.subtitle}
        </p>
      </div>
    </AbsoluteFill>
  );
};
