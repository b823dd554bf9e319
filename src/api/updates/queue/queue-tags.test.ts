import { expect, test } from '@jest/globals';
import { assertQueueTags, withoutInvalidQueueTags } from './queue-tags.ts';

test('an invalid tag that the stack has already does not prevent changes of others', () => {
  expect(() => assertQueueTags({ 'lock-wait': 'soon', a: 'b' }, { 'lock-wait': 'soon' })).not.toThrow();
  expect(() => assertQueueTags({ 'lock-wait': 'later' }, { 'lock-wait': 'soon' })).toThrow('The tag lock-wait must be');
  expect(() => assertQueueTags({ supersede: 'all' })).toThrow('The tag supersede must be');
});

test('in place of invalid tags, the stack keeps its own', () => {
  const given = { a: 'b', 'lock-wait': '10min', supersede: 'all' };
  const { problems, tags } = withoutInvalidQueueTags(given, { 'lock-wait': '5m', c: 'd' });
  expect({ ...tags }).toEqual({ a: 'b', 'lock-wait': '5m' });
  expect(problems).toHaveLength(2);
  expect(withoutInvalidQueueTags({ 'lock-wait': '1h', a: 'b' }, {})).toMatchObject({ problems: [] });
});
