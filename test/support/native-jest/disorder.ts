import { appendFileSync } from 'node:fs';
import os from 'node:os';
import { expect, jest, test } from '@jest/globals';

const { env } = process;
const timeoutKey = Symbol.for('TEST_TIMEOUT_SYMBOL');
const timeoutMs = 123_456;
let uses = 0;

/** What a file leaves behind. By its name, other files would recognize it. */
function left(): never {
  throw new Error('Left by another test file');
}

function leftAtExit(): void {
  appendFileSync(env['HOLDFAST_TEST_LEFT_FILE'] as string, 'ended\n');
}

/** They find the process as it was before any test file, and then leave it in disorder. */
export function testDisorder(): void {
  test('finds the process as it was', () => {
    uses += 1;
    const raw = ['exit', 'SIGUSR2', 'SIGTERM'].flatMap((event) => process.rawListeners(event));
    // A listener for one event is wrapped.
    const listeners = raw.map((listener): string => (Reflect.get(listener, 'listener') ?? listener).name);
    expect({
      uses,
      changed: env['HOLDFAST_TEST_CHANGED'],
      deleted: env['HOLDFAST_TEST_DELETED'],
      added: env['HOLDFAST_TEST_ADDED'],
      fetch: globalThis.fetch.name,
      isSpied: jest.isMockFunction(os.hostname),
      isFakeTime: Date.now() < 1e12,
      isFakeTimer: Object.hasOwn(setTimeout, 'clock'),
      listeners: listeners.filter((name) => name.startsWith('left')),
      exitCode: process.exitCode,
      hasTimeout: Reflect.get(globalThis, timeoutKey) === timeoutMs,
    }).toEqual({
      uses: 1,
      changed: 'before',
      deleted: 'before',
      added: undefined,
      fetch: 'fetch',
      isSpied: false,
      isFakeTime: false,
      isFakeTimer: false,
      listeners: [],
      exitCode: undefined,
      hasTimeout: false,
    });
  });

  test('leaves it in disorder', () => {
    env['HOLDFAST_TEST_CHANGED'] = 'after';
    delete env['HOLDFAST_TEST_DELETED'];
    env['HOLDFAST_TEST_ADDED'] = 'after';
    globalThis.fetch = left;
    jest.spyOn(os, 'hostname').mockReturnValue('left');
    jest.useFakeTimers({ now: 0 });
    process.on('exit', leftAtExit);
    process.on('SIGUSR2', left);
    process.once('SIGTERM', left);
    process.exitCode = 3;
    jest.setTimeout(timeoutMs);
    expect([Date.now(), os.hostname(), Reflect.get(globalThis, timeoutKey)]).toEqual([0, 'left', timeoutMs]);
  });
}
