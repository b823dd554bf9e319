import { createRequire } from 'node:module';
import type NativeEnvironment from './native-environment.ts';
import { createImporter, type TestGlobals } from './test-modules.ts';

type FakeTimersOptions = Parameters<NativeEnvironment['fakeTimersModern']['useFakeTimers']>[0];

const mocking = [
  'fn',
  'spyOn',
  'replaceProperty',
  'mocked',
  'isMockFunction',
  'clearAllMocks',
  'resetAllMocks',
  'restoreAllMocks',
] as const;
const timing = [
  'useRealTimers',
  'advanceTimersByTime',
  'advanceTimersByTimeAsync',
  'runAllTimers',
  'runAllTimersAsync',
  'runOnlyPendingTimers',
  'clearAllTimers',
  'getTimerCount',
  'setSystemTime',
  'now',
] as const;

function bindAll<K extends string>(target: Record<K, unknown>, names: readonly K[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, (target[name] as () => void).bind(target)]));
}

/**
 * Loads modules of test files with Node's own loader. Jest's runtime compiles all modules for each file, in a separate context, which took
 * about a fifth of the CPU time of tests. Tests use only their imports from `jest`: there are no module mocks and no coverage.
 */
export default class NativeRuntime {
  readonly #environment: NativeEnvironment;
  readonly #import = createImporter();
  #globals: TestGlobals = {};

  constructor(config: { fakeTimers: FakeTimersOptions }, environment: NativeEnvironment) {
    this.#environment = environment;
    this.#globals = { jest: this.#createJest(config) };
  }

  #createJest(config: { fakeTimers: FakeTimersOptions }): object {
    const { moduleMocker, fakeTimersModern } = this.#environment;
    return {
      ...bindAll(moduleMocker, mocking),
      ...bindAll(fakeTimersModern, timing),
      setTimeout: (ms: number) => Reflect.set(globalThis, Symbol.for('TEST_TIMEOUT_SYMBOL'), ms),
      useFakeTimers: (options?: FakeTimersOptions) =>
        fakeTimersModern.useFakeTimers({ ...config.fakeTimers, ...options }),
    };
  }

  setGlobalsForRuntime(globals: TestGlobals): void {
    this.#globals = { ...this.#globals, ...globals };
  }

  unstable_shouldLoadAsEsm(): boolean {
    return true;
  }

  unstable_importModule(path: string): Promise<unknown> {
    return this.#import(path, this.#globals);
  }

  requireModule(path: string): unknown {
    return createRequire(import.meta.url)(path);
  }

  /** Loaded anew for each file, because it is the state of Jest's circus. */
  requireInternalModule(path: string): unknown {
    const require = createRequire(import.meta.url);
    delete require.cache[path];
    return require(path);
  }

  getSourceMaps(): Map<string, string> {
    return new Map();
  }

  getAllCoverageInfoCopy(): undefined {
    return undefined;
  }

  clearAllMocks(): void {
    this.#environment.moduleMocker.clearAllMocks();
  }

  resetAllMocks(): void {
    this.#environment.moduleMocker.resetAllMocks();
  }

  restoreAllMocks(): void {
    this.#environment.moduleMocker.restoreAllMocks();
  }

  resetModules(): void {}

  enterTestCode(): void {}

  leaveTestCode(): void {}

  teardown(): void {
    this.restoreAllMocks();
  }
}
