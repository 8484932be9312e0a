// All that the film says and how it looks. To change a film, change this file.

export type Card = {
  title: string;
  subtitle: string;
  seconds: number;
};

export const cards: Record<string, Card> = {
  TitleCard: {
    title: "Title",
    subtitle: "",
    seconds: 3,
  },
  LowerThird: {
    title: "Key point",
    subtitle: "",
    seconds: 4,
  },
};

export const colours = {
  background: "#14202b",
  text: "#ffffff",
  accent: "#4f9d69",
};
