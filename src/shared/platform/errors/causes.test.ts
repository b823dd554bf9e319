import { expect, test } from '@jest/globals';
import { messageOf, stackOf } from './causes.ts';

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

test('connections to several addresses, none of which succeeded, have a message', () => {
  const errors = [new Error('connect ETIMEDOUT 192.0.2.1:443'), new Error('connect ENETUNREACH 2001:db8::1:443')];
  expect(messageOf(new AggregateError(errors))).toBe(
    'connect ETIMEDOUT 192.0.2.1:443; connect ENETUNREACH 2001:db8::1:443',
  );
  expect(messageOf(new AggregateError(errors, 'all failed'))).toBe('all failed');
});
