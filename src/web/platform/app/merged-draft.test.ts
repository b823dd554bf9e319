import { expect, test } from '@jest/globals';
import { mergedDraft } from './merged-draft.ts';

test('edited fields stay, and the others take the values that another user has saved', () => {
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

test('a field that was changed and changed back takes the value that another user has saved', () => {
  expect(mergedDraft({ events: ['x'] }, { events: ['x'] }, { events: [] as string[] })).toEqual({ events: [] });
});
