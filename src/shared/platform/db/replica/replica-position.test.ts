import { expect, test } from '@jest/globals';
import { type PrimaryPosition, type ReplicaPosition, unfitness } from './replica-position.ts';

const primary: PrimaryPosition = { systemId: '7', timeline: '0000000A', flushed: 100 };
const standby: ReplicaPosition = { systemId: '7', timeline: '0000000A', isStandby: true, replayed: 200, server: 'one' };

test('a standby of the same timeline is comparable, and nothing else is', () => {
  expect(unfitness(standby, primary)).toBeNull();
  expect(unfitness({ ...standby, systemId: '8' }, primary)).toBe('another cluster');
  expect(unfitness({ ...standby, isStandby: false }, primary)).toBe('not a standby');
  // It had received more than the standby that was promoted, and is ahead without later commits.
  expect(unfitness({ ...standby, timeline: '00000009' }, primary)).toBe('another timeline');
  expect(unfitness({ ...standby, timeline: '0000000B' }, primary)).toBe('another timeline');
});
