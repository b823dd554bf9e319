import { expect, test } from '@jest/globals';
import { stackOf } from './causes.ts';

test('the stack of an error has its code and its causes, and no property that may be a secret', () => {
  const cause = Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL', input: 'redis://u:secret@h' });
  const text = stackOf(new AggregateError([new Error('first')], 'all failed', { cause }));
  expect(text).toContain('all failed');
  expect(text).toContain('causes.test.ts');
  expect(text).toContain('caused by TypeError: Invalid URL');
  expect(text).toContain('(ERR_INVALID_URL)');
  expect(text).toContain('caused by Error: first');
  expect(text).not.toContain('secret');
  expect(stackOf('just a text')).toBe('just a text');
});
