import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

type FakeTimersOptions = ConstructorParameters<typeof ModernFakeTimers>[0];

// As they are before the first test file.
const globals = Object.getOwnPropertyDescriptors(globalThis) as Record<PropertyKey, PropertyDescriptor>;
const { exit } = process;
const { prepareStackTrace } = Error;

/** Of Jest, between a worker and its parent. */
const parentEvents = new Set(['message', 'internalMessage', 'disconnect']);
/** Jest's keys on the global object, which each test file begins without. */
const jestKeys =
  /^(JEST_STATE_SYMBOL|EVENT_HANDLERS|TEST_TIMEOUT_SYMBOL|RETRY_|LOG_ERRORS_BEFORE_RETRY|WAIT_BEFORE_RETRY)/;
/** Keys of packages, which are loaded once. */
const packageKeys = /^(__|ROARR$|awslambda$)/;
/** In a worker, the console of the last file remains until the next one: it reports what a file logs after its end. */
const keptGlobals = new Set<PropertyKey>(process.connected ? ['console'] : []);
/** Jest sets it when a file logs after its end. */
const lateLogCode = 1;

/**
 * Runs test files in the process itself instead of a context of their own. Afterwards, it puts back what a file has
 * changed: globals, environment variables, the exit code, and listeners of the process.
 */
export default class NativeEnvironment {
  readonly global = globalThis;
  readonly moduleMocker = new ModuleMocker(globalThis);
  readonly fakeTimers = null;
  readonly fakeTimersModern: ModernFakeTimers;
  readonly #variables = { ...process.env };
  readonly #exitCode = process.exitCode;
  readonly #listeners = new Map<string | symbol, Set<unknown>>();

  constructor({ projectConfig }: { projectConfig: FakeTimersOptions['config'] }) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    for (const event of process.eventNames()) this.#listeners.set(event, new Set(process.rawListeners(event)));
  }

  setup(): void {
    // Jest's own looks for source maps in each file of the trace. Types are stripped in place: there are none.
    Error.prepareStackTrace = prepareStackTrace;
  }

  teardown(): void {
    this.fakeTimersModern.dispose();
    try {
      this.#endListeners();
    } finally {
      for (const name of Object.keys(process.env)) if (!(name in this.#variables)) delete process.env[name];
      for (const [name, value] of Object.entries(this.#variables))
        if (process.env[name] !== value) process.env[name] = value;
      if (process.exitCode !== lateLogCode) process.exitCode = this.#exitCode;
      process.exit = exit;
      restoreGlobals();
    }
  }

  getVmContext(): null {
    return null;
  }

  /** Listeners for the exit do their work now: they end programs and remove directories that tests have left. */
  #endListeners(): void {
    const errors: unknown[] = [];
    for (const event of process.eventNames()) {
      if (parentEvents.has(String(event))) continue;
      for (const listener of process.rawListeners(event)) {
        if (this.#listeners.get(event)?.has(listener)) continue;
        process.off(event, listener as () => void);
        if (event !== 'exit') continue;
        try {
          (listener as (code: number) => void).call(process, 0);
        } catch (error) {
          errors.push(error);
        }
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}

function restoreGlobals(): void {
  for (const key of Reflect.ownKeys(globalThis)) {
    // Other symbols are of packages, too.
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
