import { PassThrough } from 'node:stream';
import { expect, test } from '@jest/globals';
import { confirm } from './confirmation.ts';

test.each([
  ['y\r', 'yes'],
  ['yes\r', 'yes'],
  ['\r', 'no'],
  ['n\r', 'no'],
  ['\u0004', 'no'],
  ['\u0003', 'interrupted'],
])('%j is %s', async (keys, answer) => {
  const input = new PassThrough();
  const asked = confirm('Sure? ', { input, output: new PassThrough(), terminal: true });
  input.write(keys);
  expect(await asked).toBe(answer);
});

test('an input that ends is a no', async () => {
  const input = new PassThrough();
  const asked = confirm('Sure? ', { input, output: new PassThrough() });
  input.end();
  expect(await asked).toBe('no');
});
