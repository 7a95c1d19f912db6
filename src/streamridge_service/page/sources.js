// Sources of forecasts in words.

const WORDS = {
  model: "by the model",
  seasonal: "as on earlier days",
  week: "as a week ago",
  day: "as a day ago",
  last: "as the last reading",
  start: "by the initial model",
  none: "none",
};

export const sourceWords = (source) => WORDS[source] ?? `by ${source}`;
