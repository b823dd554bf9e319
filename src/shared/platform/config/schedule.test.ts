import { expect, test } from '@jest/globals';
import { isDue, isSchedule } from './schedule.ts';

test.each(['0 3 * * *', '*/15 * * * 1-5', '30 2 1 * *'])('%s is a schedule', (schedule) => {
  expect(isSchedule(schedule)).toBe(true);
});

test.each(['', 'daily', '99 3 * * *', '0 3 * *', '0 0 3 * * *', '0 0 31 2 *'])('%j is no schedule', (schedule) => {
  expect(isSchedule(schedule)).toBe(false);
});

test('work is due once a time of its schedule has passed since it was last done', () => {
  const at = (text: string) => new Date(`2026-11-26T${text}Z`);
  expect(isDue('0 3 * * *', null, at('12:00:00'))).toBe(true);
  expect(isDue('0 3 * * *', at('02:59:59'), at('03:00:00'))).toBe(true);
  expect(isDue('0 3 * * *', at('03:00:01'), at('23:59:59'))).toBe(false);
  expect(isDue('0 3 * * *', new Date('2026-11-25T03:00:01Z'), at('03:00:00'))).toBe(true);
});
