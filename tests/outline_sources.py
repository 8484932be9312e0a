"""Source files in the manner of a Remotion project, for tests of the outline."""

ROOT = """\
import React from "react";
import {Composition as C, Folder, Still} from "remotion";
import * as R from "remotion";
import {TitleCard, type TitleProps} from "./TitleCard";
import type {Card} from "./cards";
import "./style.css";

// <Composition id="Commented" />
const OUTRO = "Outro";
const shown = `<Composition id="InText" />`;

const defaults = {
  title: "A <Still id='NoStill' />",
};

export const RemotionRoot: React.FC = () => {
  return (
    <>
      <C
        id="TitleCard"
        component={TitleCard}
        durationInFrames={75}
        defaultProps={defaults}
      />
      <Folder name="ends">
        <R.Composition id={OUTRO} component={TitleCard} />
        <Folder name={"inner"}>
          <Still id={`Poster`} component={TitleCard} />
        </Folder>
      </Folder>
      {cards.map((card) => (
        <C id={`card-${card.id}`} key={card.id} component={TitleCard} />
      ))}
      <C {...rest} />
    </>
  );
};

function helper(value: number) {
  return value;
}
"""
"""A root with compositions of every kind; `tsx`."""

LIBRARY = """\
import path = require("path");
const {join, resolve: solved} = require("path"), fs = require("fs");

export const {width, size: {height, ...others}, fps = 25} = read(), [first, , last] = list;
export {join as joined, Shape as default};
export {a as "a text", type Props, default as Other} from "./other";
export * from "./all";
export * as everything from "./everything";
export type Shape = {kind: "a"} | {kind: "b"};
export interface Named {
  name: string;
}
export enum Colour {Red}
export abstract class Base {}
export async function* frames() {}
export function over(value: string): void;
export declare const ambient: number;
export namespace Inner {
  export const hidden = 1;
}
declare module "elsewhere" {
  export const alsoHidden: number;
}
let counter = 0;
const cast = <Shape>counter;
"""
"""Exports of every kind; `ts`."""

COMMONJS = """\
"use strict";
const {a} = require("./a");
exports.one = exports.two = void 0;
module.exports.three = () => 3;
module.exports = {
  a,
  four: 4,
  five() {},
};
other.exports.six = 6;
function inside() {
  exports.seven = 7;
}
"""
"""A CommonJS file; `js`."""

BROKEN = """\
import {AbsoluteFill} from "remotion";
export const First = () => {
  return <AbsoluteFill>;
};
export const Second = () => {
  if (true) {
    return null;
};
export function Third() {}
"""
"""An element and a block that are never closed; `tsx`."""

SOURCES = {"Root.tsx": ROOT, "library.ts": LIBRARY, "common.js": COMMONJS, "broken.tsx": BROKEN}
