import type {CSSProperties} from "react";
import {colours} from "./cards";

// Fonts of the machine alone: nothing is fetched while a film is rendered.
export const text: CSSProperties = {
  color: colours.text,
  fontFamily: 'Inter, "Noto Sans", "DejaVu Sans", Arial, sans-serif',
  lineHeight: 1.15,
  margin: 0,
  overflowWrap: "anywhere",
};

// The size of a text that has to fit: `largest` up to `roomy` letters, less for a longer one.
export const fitted = (words: string, largest: number, roomy: number): number =>
  Math.round(largest * Math.min(1, Math.sqrt(roomy / Math.max(words.length, 1))));
