import React from "react";
import {Composition} from "remotion";
import {cards} from "./cards";
import {LowerThird} from "./LowerThird";
import {TitleCard} from "./TitleCard";
import {fps, framesOf, height, width} from "./size";

export const Root: React.FC = () => (
  <>
    <Composition
      id="TitleCard"
      component={TitleCard}
      durationInFrames={framesOf("TitleCard")}
      fps={fps}
      width={width}
      height={height}
      defaultProps={{card: cards["TitleCard"]}}
    />
    <Composition
      id="LowerThird"
      component={LowerThird}
      durationInFrames={framesOf("LowerThird")}
      fps={fps}
      width={width}
      height={height}
      defaultProps={{card: cards["LowerThird"]}}
    />
  </>
);
