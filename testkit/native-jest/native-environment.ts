import { setImmediate as nextTurn } from 'node:timers/promises';
import { inspect } from 'node:util';
import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

type FakeTimersOptions = ConstructorParameters<typeof ModernFakeTimers>[0];

// The globals before the first test file.
const globals = Object.getOwnPropertyDescriptors(globalThis) as Record<PropertyKey, PropertyDescriptor>;
const { exit } = process;
const { prepareStackTrace } = Error;

/** Events of Jest between a worker and its parent. */
const parentEvents = new Set(['message', 'internalMessage', 'disconnect']);
/** Jest's keys on the global object, which are removed before each test file. */
const jestKeys =
  /^(JEST_STATE_SYMBOL|EVENT_HANDLERS|TEST_TIMEOUT_SYMBOL|RETRY_|LOG_ERRORS_BEFORE_RETRY|WAIT_BEFORE_RETRY)/;
/** Keys of packages, which are loaded only once. */
const packageKeys = /^(__|ROARR$|awslambda$)/;
/** In a worker, the console of the last file remains until the next one: it reports output of a file after its end. */
const keptGlobals = new Set<PropertyKey>(process.connected ? ['console'] : []);
/** Jest sets this exit code when a file logs after its end. */
const lateLogCode = 1;

/**
 * Runs test files in the process itself instead of in separate contexts. Afterwards, it restores everything that a file has changed:
 * globals, environment variables, the exit code, and listeners of the process. A failure after the last test that nobody awaits fails the
 * file; it would otherwise end the process, and the run with `-i`.
 */
export default class NativeEnvironment {
  readonly global = globalThis;
  readonly moduleMocker = new ModuleMocker(globalThis);
  readonly fakeTimers = null;
  readonly fakeTimersModern: ModernFakeTimers;
  readonly #variables = { ...process.env };
  readonly #exitCode = process.exitCode;
  readonly #listeners = new Map<string | symbol, Set<unknown>>();
  readonly #lateErrors: unknown[] = [];

  constructor({ projectConfig }: { projectConfig: FakeTimersOptions['config'] }) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    for (const event of process.eventNames()) this.#listeners.set(event, new Set(process.rawListeners(event)));
    // Jest sets its own listeners from the first test to the last one.
    for (const event of ['unhandledRejection', 'uncaughtException'])
      process.on(event, (error: unknown) => this.#lateErrors.push(error));
  }

  setup(): void {
    // Jest's own function looks for source maps in each file of the trace. There are none, because types are stripped in place.
    Error.prepareStackTrace = prepareStackTrace;
  }

  /** Jest prints message and stack. If a test fails, and then its `await using`, too, they name neither failure. */
  handleTestEvent({ error }: { readonly error?: unknown }): void {
    if (error instanceof SuppressedError) Object.assign(error, { message: '', stack: describe(error) });
  }

  async teardown(): Promise<void> {
    this.fakeTimersModern.dispose();
    try {
      this.#runExitListeners();
      await nextTurn();
    } finally {
      this.#removeListeners();
      for (const name of Object.keys(process.env)) if (!(name in this.#variables)) delete process.env[name];
      for (const [name, value] of Object.entries(this.#variables))
        if (process.env[name] !== value) process.env[name] = value;
      if (process.exitCode !== lateLogCode) process.exitCode = this.#exitCode;
      process.exit = exit;
      restoreGlobals();
    }
    if (this.#lateErrors.length > 0) throw this.#lateErrors[0];
  }

  getVmContext(): null {
    return null;
  }

  #addedListeners(event: string | symbol): ((...values: unknown[]) => void)[] {
    const listeners = process.rawListeners(event as 'exit') as ((...values: unknown[]) => void)[];
    return listeners.filter((listener) => !this.#listeners.get(event)?.has(listener));
  }

  /** Runs the exit listeners now: they end programs and remove directories that tests have left behind. */
  #runExitListeners(): void {
    const errors: unknown[] = [];
    for (const listener of this.#addedListeners('exit')) {
      process.off('exit', listener);
      try {
        listener.call(process, 0);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }

  #removeListeners(): void {
    for (const event of process.eventNames())
      if (!parentEvents.has(String(event)))
        for (const listener of this.#addedListeners(event)) process.off(event, listener);
  }
}

/** Describes an error, the first failure first. */
function describe(error: unknown): string {
  if (!(error instanceof SuppressedError)) return error instanceof Error && error.stack ? error.stack : inspect(error);
  return `${describe(error.suppressed)}\n\nThen, its disposal failed:\n${describe(error.error)}`;
}

function restoreGlobals(): void {
  for (const key of Reflect.ownKeys(globalThis)) {
    // Other symbols belong to packages, too.
    const isAdded =
      typeof key === 'symbol' ? jestKeys.test(key.description ?? '') : !(key in globals || packageKeys.test(key));
    if (isAdded) Reflect.deleteProperty(globalThis, key);
  }
  for (const key of Reflect.ownKeys(globals)) {
    const before = globals[key] as PropertyDescriptor;
    const now = Object.getOwnPropertyDescriptor(globalThis, key);
    if (before.configurable && !keptGlobals.has(key) && (now?.value !== before.value || now?.get !== before.get))
      Object.defineProperty(globalThis, key, before);
  }
}
