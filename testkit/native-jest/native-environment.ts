import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';

type FakeTimersOptions = ConstructorParameters<typeof ModernFakeTimers>[0];

// As they are before the first test file.
const globals = Object.getOwnPropertyDescriptors(globalThis) as Record<PropertyKey, PropertyDescriptor>;
const { exit } = process;
const { prepareStackTrace } = Error;

const signalsAndExit = /^(SIG|exit$|beforeExit$)/;
/** Jest's keys on the global object, which each test file begins without. */
const jestKeys =
  /^(JEST_STATE_SYMBOL|EVENT_HANDLERS|TEST_TIMEOUT_SYMBOL|RETRY_|LOG_ERRORS_BEFORE_RETRY|WAIT_BEFORE_RETRY)/;

/**
 * Runs test files in the process itself instead of a context of their own. Afterwards, it puts back what a file has
 * changed: globals, environment variables, the exit code, and listeners for signals and the exit.
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
    this.#endListeners();
    for (const name of Object.keys(process.env)) if (!(name in this.#variables)) delete process.env[name];
    for (const [name, value] of Object.entries(this.#variables))
      if (process.env[name] !== value) process.env[name] = value;
    process.exitCode = this.#exitCode;
    process.exit = exit;
    restoreGlobals();
  }

  getVmContext(): null {
    return null;
  }

  /** Listeners for the exit do their work now: they end programs and remove directories that tests have left. */
  #endListeners(): void {
    for (const event of process.eventNames()) {
      if (typeof event !== 'string' || !signalsAndExit.test(event)) continue;
      for (const listener of process.rawListeners(event)) {
        if (this.#listeners.get(event)?.has(listener)) continue;
        process.off(event, listener as () => void);
        if (event === 'exit') (listener as (code: number) => void).call(process, 0);
      }
    }
  }
}

function restoreGlobals(): void {
  for (const key of Object.getOwnPropertySymbols(globalThis))
    if (jestKeys.test(key.description ?? '')) Reflect.deleteProperty(globalThis, key);
  for (const key of Reflect.ownKeys(globals)) {
    const before = globals[key] as PropertyDescriptor;
    const now = Object.getOwnPropertyDescriptor(globalThis, key);
    if (before.configurable && (now?.value !== before.value || now?.get !== before.get))
      Object.defineProperty(globalThis, key, before);
  }
}
