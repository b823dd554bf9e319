import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ToolUnavailableError } from '../../testkit/toolchain/command.ts';
import { bodiesForNobody, manyConnections, slowConnections, wrongTokens } from './attacks/strangers.ts';
import {
  eventPages,
  historyPages,
  largeDecrypts,
  largeRenames,
  manyCalls,
  mix,
  trickledUploads,
} from './attacks/tenants.ts';
import { type Attack, type AttackReport, attack } from './support/attack.ts';
import { startClusterTarget, startEmbeddedTarget, type Target } from './support/target.ts';

// What a stranger or a noisy tenant may do to others. Each attack runs while an innocent tenant works.
// HOLDFAST_TEST_ABUSE_SECONDS: length of each; from 15 on (the long form) with larger bodies.

const seconds = Number(process.env['HOLDFAST_TEST_ABUSE_SECONDS'] ?? 3);
const isLong = seconds >= 15;
/** Limit for one process under any of the attacks, in MB. */
const mostMegabytes = 400;
const limitMs = seconds * 1000 + 240_000;

const ofTenants: readonly Attack[] = [
  trickledUploads,
  eventPages(isLong ? 300 : 32),
  historyPages(isLong ? 64 : 12),
  largeDecrypts(isLong ? 60 : 15),
  largeRenames(isLong ? 400 : 30),
  manyCalls,
];
const attacks: readonly Attack[] = [
  bodiesForNobody,
  wrongTokens,
  slowConnections,
  manyConnections,
  ...ofTenants,
  mix(ofTenants),
];
/** In a cluster the short form includes only attacks on what replicas share. */
const ofCluster = isLong ? attacks : [wrongTokens, manyConnections, trickledUploads, mix(ofTenants)];
const reports: AttackReport[] = [];

afterAll(() => {
  const head = [
    'shape',
    'attack',
    'RSS before',
    'peak MB',
    'user p50 ms',
    'p99',
    'max',
    'calls',
    'writes',
    'responses to the attacker',
  ];
  const rows = reports.map(({ shape, attack: name, innocent, answers, rssBefore, rssPeak }) => {
    const counts = [rssBefore, rssPeak, innocent.p50, innocent.p99, innocent.max].map((figure) => figure.toFixed(0));
    return [shape, name, ...counts, innocent.calls, innocent.writes, String(answers)];
  });
  process.stderr.write(`\n${[head, ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')}\n`);
});

describe.each([
  { shape: 'embedded' as const, start: startEmbeddedTarget, attacks },
  { shape: 'cluster' as const, start: startClusterTarget, attacks: ofCluster },
])('in the mode $shape', ({ shape, start, attacks: own }) => {
  let target: Target | undefined;
  beforeAll(async () => {
    try {
      target = await start();
    } catch (error) {
      if (!(error instanceof ToolUnavailableError) || process.env['CI']) throw error;
      console.warn(`Attacks on the shape ${shape} are left out: ${error.message}`);
    }
  }, 240_000);
  afterAll(async () => {
    await target?.[Symbol.asyncDispose]();
  });

  test.each(own.map((each) => [each.name, each] as const))(
    '%s: others continue to work, and memory is bounded',
    async (_name, each) => {
      if (!target) return;
      const report = await attack(target, each, seconds);
      reports.push(report);
      expect(report.innocent.failures).toEqual([]);
      expect(report.innocent.calls).toBeGreaterThan(0);
      expect(report.innocent.writes).toBeGreaterThan(0);
      expect(report.answers.count(500)).toBe(0);
      expect(report.rssPeak).toBeLessThan(mostMegabytes);
    },
    limitMs,
  );

  test('the server has logged no fault', () => {
    const faults = target
      ?.log()
      .split('\n')
      // Running out of budget for an attacker's data is not a fault.
      .filter(
        (line) =>
          /"level":"(error|fatal)"/.test(line) && !/"type":"(UnavailableError|BudgetExhaustedError)"/.test(line),
      );
    expect(faults ?? []).toEqual([]);
  });
});
