import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { AcquireTimeoutError, ConnectionGate, runFirst, runInOrder } from './connection-gate.ts';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Callers of a gate that stay inside until they are released. */
class Callers {
  readonly inside: string[] = [];
  readonly failed: string[] = [];
  readonly #leave = new Map<string, () => void>();
  readonly #gate: ConnectionGate;

  constructor(poolSize: number) {
    this.#gate = new ConnectionGate(poolSize);
  }

  /** Names that begin with "first" have priority. */
  async arrive(...names: string[]): Promise<void> {
    for (const name of names) {
      const stay = async (): Promise<void> => {
        this.inside.push(name);
        await new Promise<void>((resolve) => this.#leave.set(name, resolve));
        this.inside.splice(this.inside.indexOf(name), 1);
      };
      const call = (): Promise<void> => this.#gate.run(5_000, stay);
      (name.startsWith('first') ? runFirst(call) : call()).catch((error: unknown) => {
        this.failed.push(error instanceof AcquireTimeoutError ? name : String(error));
      });
    }
    await jest.advanceTimersByTimeAsync(0);
  }

  async leave(...names: string[]): Promise<void> {
    for (const name of names) {
      this.#leave.get(name)?.();
      await jest.advanceTimersByTimeAsync(0);
    }
  }

  get waiting(): number {
    return this.#gate.waiting;
  }
}

describe('without priority work', () => {
  test('all connections are used, and others wait in order', async () => {
    const callers = new Callers(2);
    await callers.arrive('a', 'b', 'c', 'd');
    expect([callers.inside, callers.waiting]).toEqual([['a', 'b'], 2]);
    await callers.leave('b');
    expect(callers.inside).toEqual(['a', 'c']);
    await callers.leave('a', 'c', 'd');
    expect([callers.inside, callers.waiting]).toEqual([[], 0]);
  });

  test('a caller that waits too long gets an error', async () => {
    const callers = new Callers(1);
    await callers.arrive('a', 'b');
    await jest.advanceTimersByTimeAsync(5_000);
    expect([callers.failed, callers.waiting]).toEqual([['b'], 0]);
    await callers.leave('a');
    await callers.arrive('c');
    expect(callers.inside).toEqual(['c']);
  });
});

describe('priority work', () => {
  test('gets the next connection', async () => {
    const callers = new Callers(2);
    await callers.arrive('a', 'b', 'c', 'first 1', 'first 2');
    await callers.leave('a');
    expect(callers.inside).toEqual(['b', 'first 1']);
    await callers.leave('b');
    expect(callers.inside).toEqual(['first 1', 'first 2']);
    await callers.leave('first 1');
    expect(callers.inside).toEqual(['first 2', 'c']);
  });

  test('leaves only half of the connections to others, and all of them soon after', async () => {
    const callers = new Callers(4);
    await callers.arrive('first', 'a', 'b', 'c', 'd');
    expect(callers.inside).toEqual(['first', 'a', 'b']);
    await callers.leave('first');
    expect(callers.inside).toEqual(['a', 'b']);
    await jest.advanceTimersByTimeAsync(250);
    expect(callers.inside).toEqual(['a', 'b', 'c', 'd']);
  });

  test('leaves a connection to others even in the smallest pool', async () => {
    const callers = new Callers(1);
    await callers.arrive('first', 'a');
    await callers.leave('first');
    expect(callers.inside).toEqual(['a']);
  });

  test('overtakes no caller that has waited long', async () => {
    const callers = new Callers(1);
    await callers.arrive('a', 'b', 'c');
    await jest.advanceTimersByTimeAsync(499);
    await callers.arrive('first 1');
    await callers.leave('a');
    expect(callers.inside).toEqual(['first 1']);
    await jest.advanceTimersByTimeAsync(1);
    await callers.arrive('first 2');
    await callers.leave('first 1', 'b');
    expect(callers.inside).toEqual(['c']);
  });

  test('does not delay other work for long, however much of it there is', async () => {
    const callers = new Callers(4);
    await callers.arrive('first', 'a', 'b', 'c');
    for (let at = 1; at <= 6; at++) {
      expect(callers.inside).not.toContain('c');
      await jest.advanceTimersByTimeAsync(100);
      await callers.arrive(`first ${at}`);
      await callers.leave(`first ${at}`);
      if (callers.inside.includes('c')) break;
    }
    expect(callers.inside).toContain('c');
  });

  test('may start work without priority', async () => {
    const gate = new ConnectionGate(1);
    const order: string[] = [];
    const note = (name: string) => gate.run(5_000, async () => void order.push(name));
    const held = Promise.withResolvers<void>();
    const holding = gate.run(5_000, () => held.promise);
    const calls = [note('a'), runFirst(() => runInOrder(() => note('b'))), runFirst(() => note('first'))];
    held.resolve();
    await Promise.all([holding, ...calls]);
    expect(order).toEqual(['first', 'a', 'b']);
  });
});
