import { expect, test } from '@jest/globals';
import { isSameView, viewOf } from './viewed-page.ts';

test('a view has what is set, as text, in any order', () => {
  const shown = viewOf('ci', { days: 30, view: 'runs', reason: undefined, project: '' });
  expect(shown).toEqual({ page: 'ci', search: { days: '30', view: 'runs' } });
  expect(isSameView({ page: 'ci', search: { view: 'runs', days: '30' } }, shown)).toBe(true);
  for (const other of [
    { page: 'ci', search: { view: 'runs' } },
    { page: 'activity', search: { days: '30', view: 'runs' } },
  ] as const)
    expect(isSameView(other, shown)).toBe(false);
});
