import { expect, test } from '@jest/globals';
import { mergedDraft } from './merged-draft.ts';

test('fields that were typed into stay, and the others are as somebody else has saved them', () => {
  const first = { name: 'a', note: 'old', events: ['x'], groups: [] as string[] };
  const typed = { ...first, note: 'mine', events: ['x', 'y'] };
  const saved = { name: 'b', note: 'theirs', events: ['z'], groups: ['stacks'] };
  expect(mergedDraft(first, typed, saved)).toEqual({
    name: 'b',
    note: 'mine',
    events: ['x', 'y'],
    groups: ['stacks'],
  });
});

test('a field that was changed and changed back is as somebody else has saved it', () => {
  expect(mergedDraft({ events: ['x'] }, { events: ['x'] }, { events: [] as string[] })).toEqual({ events: [] });
});
