import { expect, test } from '@jest/globals';
import { ValueViews } from './value-views.ts';

test('an answer has at most about 1 MiB of values', async () => {
  const values = new ValueViews();
  const value = Buffer.from(JSON.stringify('x'.repeat(16_000)));
  const shown: unknown[] = [];
  for (let at = 0; at < 200; at++) shown.push(await values.property(`p${at}`, value, value));
  expect(values.isFull).toBe(true);
  expect(JSON.stringify(shown).length).toBeLessThan(1.1 * 1024 * 1024);
  expect(shown[0]).toMatchObject({ path: 'p0', before: 'x'.repeat(16_000) });
  expect(shown[199]).toMatchObject({ before: { '[large]': value.length } });
  expect(await values.property('small', null, Buffer.from('1'))).toEqual({ path: 'small', before: null, after: 1 });
});
