import { expect, test } from '@jest/globals';
import { askAbout, type Way } from './run-actions.tsx';
import { queueTexts } from './texts.tsx';

test('a sum of the loaded page says when there is more', () => {
  expect(queueTexts.sum(1, 0, false)).toBe('1 run holds a lock, none waiting');
  expect(queueTexts.sum(3, 1, false)).toBe('3 runs hold locks, 1 waits');
  expect(queueTexts.sum(150, 50, true)).toBe('At least 150 runs hold locks, 50 wait');
  // The queue goes on after what is loaded.
  expect(queueTexts.sum(200, 0, true)).toBe('At least 200 runs hold locks');
  expect(queueTexts.sum(1, 0, true)).toBe('At least 1 run holds a lock');
});

test('the question before a run is stopped says which one', () => {
  const run = { by: 'ada', kind: 'destroy', position: 2, project: 'web', stack: 'prod' } as const;
  for (const way of ['evict', 'drain', 'cancel'] satisfies Way[]) {
    const { description, title } = askAbout(run, way);
    expect(title).toContain('web/prod');
    expect(description).toMatch(/^Destroy by ada: /);
  }
  expect(askAbout({ ...run, kind: null, by: null }, 'evict')).toMatchObject({
    title: 'Remove number 2 from the queue of web/prod?',
    description: expect.stringMatching(/^Run: /),
  });
});
