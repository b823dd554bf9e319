import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { DataDirClaim } from '../../src/shared/platform/claim/data-dir-claim.ts';
import { createLogger } from '../../src/shared/platform/logger/logger.ts';
import { buildBundle } from '../../testkit/bundles/node-bundle.ts';
import { until } from '../support/until.ts';

const home = mkdtempSync(path.join(tmpdir(), 'holdfast-claim-'));
const program = path.join(home, 'claim-process.mjs');
const newcomers = new Set<Newcomer>();
let directory: string;
let logged: { msg: string; host?: string; seconds?: number }[];
const logger = createLogger({ level: 'info' }, { write: (line) => void logged.push(JSON.parse(line)) });

// Some seventy of them start, each with a quarter of the CPU time that its sources need.
beforeAll(() => buildBundle(import.meta.dirname, { 'claim-process': '../support/claim-process.ts' }, home));
beforeEach(() => {
  directory = mkdtempSync(path.join(home, 'data-'));
  logged = [];
});
afterAll(() => {
  for (const { child } of newcomers) child.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
});

/** A process that claims directories. */
interface Newcomer {
  readonly child: ChildProcess;
  readonly lines: string[];
}

function newcomer(): Newcomer {
  const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => void lines.push(line));
  const started = { child, lines };
  newcomers.add(started);
  return started;
}

const withoutLocks = { takeLock: () => 'unsupported' as const, beatMs: 20 };
const claimFile = (number: number): string => path.join(directory, 'claims', String(number).padStart(8, '0'));

/** Leaves the claim of a server on another machine. */
function leaveClaim(number: number, beat: string): void {
  mkdirSync(path.join(directory, 'claims'), { recursive: true });
  const owner = { id: `other-${number}`, host: 'elsewhere', boot: 'other', pidNamespace: 'other', pid: 1, start: '1' };
  writeFileSync(claimFile(number), JSON.stringify({ ...owner, lock: null, isReleased: false }));
  writeFileSync(`${claimFile(number)}.beat`, beat);
}

const modes = [
  { owner: 'an owner that was killed, with locks', locks: true, unseen: false, rounds: 20 },
  { owner: 'an owner that was killed, without locks', locks: false, unseen: false, rounds: 20 },
  { owner: 'an owner that cannot be seen, without locks', locks: false, unseen: true, rounds: 5 },
];
test.each(modes)('of eight processes that start at once after $owner, one gets the directory', async (mode) => {
  const { locks, unseen, rounds } = mode;
  const command = `${JSON.stringify({ directory, locks, watchMs: 500 })}\n`;
  const all = Array.from({ length: 8 }, newcomer);
  for (let round = 1; round <= rounds; round++) {
    if (unseen) {
      rmSync(path.join(directory, 'claims'), { recursive: true, force: true });
      leaveClaim(round, 'unchanged');
    }
    await until(() => all.every(({ lines }) => lines.includes('ready')), 'all have started');
    for (const { child, lines } of all) {
      lines.length = 0;
      child.stdin?.write(command);
    }
    await until(() => all.every(({ lines }) => lines.length > 0), 'all have an answer');
    const answers = all.map(({ lines }) => lines.join('\n')).sort();
    const refused = new RegExp(`^DataDirInUseError: The data directory ${directory} is in use by another server`);
    expect(answers.slice(0, 7)).toEqual(answers.slice(0, 7).map(() => expect.stringMatching(refused)));
    expect(answers[7]).toBe('won');
    const at = all.findIndex(({ lines }) => lines[0] === 'won');
    const [winner] = all.splice(at, 1, newcomer());
    for (const { lines } of all) if (lines.length > 0) lines.push('ready');
    winner?.child.kill('SIGKILL');
    await until(() => winner?.child.signalCode !== null, 'the owner has ended');
    newcomers.delete(winner as Newcomer);
  }
  for (const { child } of all) child.kill('SIGKILL');
});

test('an owner that cannot be seen is watched, and keeps the directory while its number moves', async () => {
  leaveClaim(7, '0');
  let beats = 0;
  const beating = setInterval(() => writeFileSync(`${claimFile(7)}.beat`, String(++beats)), 100);
  try {
    const claiming = DataDirClaim.acquire(directory, { ...withoutLocks, logger, watchMs: 120_000 });
    await expect(claiming).rejects.toThrow(`${directory} is in use by another server (process 1 on host elsewhere)`);
  } finally {
    clearInterval(beating);
  }
  expect(logged).toMatchObject([
    { msg: expect.stringMatching(/^waiting: .*claimed/), host: 'elsewhere', seconds: 120 },
  ]);
});

test('an unobservable owner without signs of life is replaced, and notices when it wakes', async () => {
  const frozen = await DataDirClaim.acquire(directory, { ...withoutLocks, logger, beatMs: 3_600_000 });
  const reasons: string[] = [];
  frozen.onLost((reason) => reasons.push(reason));
  expect(frozen.holds()).toBe(true);
  // What the newcomer finds when the owner is on another machine.
  rmSync(claimFile(1));
  leaveClaim(1, '0');
  await using next = await claimed();
  expect(logged.map(({ msg }) => msg)).toEqual([
    expect.stringMatching(/^waiting/),
    expect.stringMatching(/^taking over/),
  ]);
  expect(frozen.holds()).toBe(false);
  expect(frozen.holds()).toBe(false);
  expect(reasons).toEqual([expect.stringMatching(`^the server that is process ${process.pid} on host .* has it now$`)]);
  frozen.release();
  expect(next.claim.holds()).toBe(true);
});

test('an owner notices by itself that its claim is gone', async () => {
  const claim = await DataDirClaim.acquire(directory, { ...withoutLocks, logger });
  const reasons: string[] = [];
  claim.onLost((reason) => reasons.push(reason));
  rmSync(path.join(directory, 'claims'), { recursive: true });
  await until(() => reasons.length > 0, 'it notices');
});

test('an owner that gave the directory back is followed at once, and little is left of it', async () => {
  for (let round = 0; round < 3; round++) {
    const { claim } = await claimed(3_600_000);
    expect(claim.holds()).toBe(true);
    claim.release();
    expect(claim.holds()).toBe(false);
  }
  expect(logged).toEqual([]);
  expect(readdirSync(path.join(directory, 'claims'))).toEqual(['00000006']);
});

test('a claim that cannot be read is watched', async () => {
  leaveClaim(3, '0');
  writeFileSync(claimFile(3), '{"id":');
  await using next = await claimed();
  expect(next.claim.holds()).toBe(true);
  expect(logged).toHaveLength(2);
});

test('a copy of the directory of a running server can be used', async () => {
  const original = await DataDirClaim.acquire(directory, { logger });
  const copy = `${directory}-copy`;
  cpSync(directory, copy, { recursive: true });
  try {
    const claim = await DataDirClaim.acquire(copy, { logger, watchMs: 500 });
    expect([original.holds(), claim.holds()]).toEqual([true, true]);
    claim.release();
  } finally {
    original.release();
  }
});

async function claimed(watchMs = 500): Promise<{ claim: DataDirClaim } & AsyncDisposable> {
  const claim = await DataDirClaim.acquire(directory, { ...withoutLocks, logger, watchMs });
  return { claim, [Symbol.asyncDispose]: async () => claim.release() };
}
