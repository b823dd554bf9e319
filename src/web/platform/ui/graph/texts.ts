import { numberLocale } from '../locale.ts';
// This file does not import React, because the drawing worker uses some of the texts.

export const graphTexts = {
  all: 'All',
  boxesLeftOut: (count: number) =>
    ` ${count.toLocaleString(numberLocale)} ${count === 1 ? 'box is' : 'boxes are'} left out: collapse some.`,
  cannotBeDrawn: 'The graph cannot be drawn.',
  clear: 'Clear',
  linesLeftOut: (count: number) =>
    ` ${count.toLocaleString(numberLocale)} ${count === 1 ? 'line of a single dependency is' : 'lines of single dependencies are'} left out.`,
  map: 'Map of the graph',
  neighborhood: 'Neighborhood',
  outline: 'Outline',
  searchIn: (graph: string) => `Search in: ${graph}`,
  tryAgain: 'Try again',
  whatIsShown: 'What is shown',
} as const;

export const graphBoxTexts = {
  collapse: 'Collapse',
  collapseBox: (box: string) => `Collapse ${box}`,
  expand: 'Expand',
  expandBox: (box: string) => `Expand ${box}`,
  inside: (count: number) => `${count.toLocaleString(numberLocale)} inside`,
  more: (count: number) => `${count.toLocaleString(numberLocale)} more`,
  needs: (boxes: readonly string[], more: number) => `needs ${boxes.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
  resources: (count: number) => `${count.toLocaleString(numberLocale)} resources`,
} as const;

export const graphSearchTexts = {
  field: 'Find by name or type',
  firstOf: (first: number, count: number) => `The first ${first} of ${count.toLocaleString(numberLocale)} matches`,
  matches: (count: number) => `${count} ${count === 1 ? 'match' : 'matches'}`,
  nothing: 'Nothing matches',
} as const;
