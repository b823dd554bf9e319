import { describe, expect, test } from '@jest/globals';
import { type EndStatus, transition, type UpdateStatus, type UpdateTrigger } from './update-state.ts';

const complete = (status: EndStatus): UpdateTrigger => ({ type: 'complete', status });
const triggers: [string, UpdateTrigger][] = [
  ['complete succeeded', complete('succeeded')],
  ['complete failed', complete('failed')],
  ['complete cancelled', complete('cancelled')],
  ['cancel', { type: 'cancel' }],
  ['expire', { type: 'expire' }],
];
const expected: Record<UpdateStatus, string[]> = {
  'not started': ['lease-dead', 'lease-dead', 'lease-dead', 'cancelled', 'cancelled'],
  running: ['succeeded', 'failed', 'cancelled', 'cancelled', 'cancelled'],
  succeeded: ['repeat', 'lease-dead', 'lease-dead', 'repeat', 'repeat'],
  failed: ['lease-dead', 'repeat', 'lease-dead', 'repeat', 'repeat'],
  cancelled: ['lease-dead', 'lease-dead', 'repeat', 'repeat', 'repeat'],
};

describe('update states', () => {
  const rows = Object.entries(expected).flatMap(([status, results]) =>
    triggers.map(([name, trigger], index) => [status as UpdateStatus, name, trigger, results[index]] as const),
  );
  test.each(rows)('%s on %s', (status, _name, trigger, result) => {
    const outcome = transition(status, trigger);
    expect(outcome.outcome === 'move' ? outcome.to : outcome.outcome).toBe(result);
  });
});
