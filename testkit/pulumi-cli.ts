import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { killSession } from './process-session.ts';
import { CliProcess, type CliResult } from './pulumi-process.ts';
import type { ExportedState } from './pulumi-state.ts';
import type { PulumiProgram } from './stash-program.ts';
import { TestCloud } from './test-cloud.ts';
import type { PulumiVersion } from './toolchain/recipes.ts';
import { ensureToolchain } from './toolchain/toolchain.ts';

export interface WorkspaceOptions {
  /** Default version of the CLI. */
  cli?: PulumiVersion;
  /** Default: the CLI's file backend in the workspace (`stateDir`). */
  backendUrl?: string;
  accessToken?: string;
  /** Shared with another workspace that uses the same stack. */
  cloud?: TestCloud;
  /** Additional environment of every run. */
  env?: Record<string, string>;
}

export interface RunOptions {
  cli?: PulumiVersion;
  /** Added to the environment; undefined removes a variable. */
  env?: Record<string, string | undefined>;
  /** Afterwards, the whole process tree is killed and the run throws. */
  timeoutMs?: number;
  input?: string;
  /** In place of the CLI, which is on its PATH. */
  program?: string;
}

/** The message contains the whole output of the run. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly result: CliResult;

  constructor(what: string, args: readonly string[], result: CliResult) {
    super(`pulumi ${args.join(' ')}: ${what}\n--- stdout\n${result.stdout}\n--- stderr\n${result.stderr}`);
    this.result = result;
  }
}

const defaultTimeoutMs = 400_000;
const inherited = ['TMPDIR', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'SystemRoot'];

/** A user's machine: a new home directory with the test provider, a project, an environment. */
export class PulumiWorkspace implements AsyncDisposable {
  readonly dir: string;
  readonly programDir: string;
  readonly stateDir: string;
  readonly cloud: TestCloud;
  readonly #options: WorkspaceOptions;
  readonly #processes = new Set<CliProcess>();
  #disposed = false;

  private constructor(dir: string, options: WorkspaceOptions) {
    this.dir = dir;
    this.programDir = join(dir, 'program');
    this.stateDir = join(dir, 'state');
    this.cloud = options.cloud ?? new TestCloud(join(dir, 'cloud'));
    this.#options = options;
  }

  /** Creates a workspace in a temporary directory. First builds the CLI and the provider if needed. */
  static async create(options: WorkspaceOptions = {}): Promise<PulumiWorkspace> {
    const tools = await ensureToolchain({ only: [`pulumi-${options.cli ?? '3.276'}`, 'test-provider'] });
    const workspace = new PulumiWorkspace(await mkdtemp(join(tmpdir(), 'holdfast-cli-')), options);
    const pluginDir = join(workspace.dir, 'pulumi-home', 'plugins', 'resource-holdfast-v1.0.0');
    for (const dir of [pluginDir, workspace.programDir, workspace.stateDir, workspace.cloud.dir]) {
      await mkdir(dir, { recursive: true });
    }
    await symlink(tools['test-provider'], join(pluginDir, 'pulumi-resource-holdfast'));
    return workspace;
  }

  async writeProgram(program: PulumiProgram | string): Promise<void> {
    const text = typeof program === 'string' ? program : JSON.stringify(program, null, 2);
    await writeFile(join(this.programDir, 'Pulumi.yaml'), text);
  }

  /** Starts the CLI in the project directory without waiting for it. */
  async spawn(args: readonly string[], options: Omit<RunOptions, 'timeoutMs'> = {}): Promise<CliProcess> {
    const tool = `pulumi-${options.cli ?? this.#options.cli ?? '3.276'}` as const;
    const file = (await ensureToolchain({ only: [tool] }))[tool];
    const env = this.#environment(dirname(file), options.env ?? {});
    const input = options.input === undefined ? {} : { input: options.input };
    // `dispose` would miss a process that starts later.
    if (this.#disposed) throw new Error(`pulumi ${args.join(' ')}: the workspace is disposed of`);
    const started = new CliProcess({ file: options.program ?? file, args, cwd: this.programDir, env, ...input });
    this.#processes.add(started);
    // A killed CLI may have left plugins behind. Otherwise the entry is removed, because process ids are reused.
    started.done.then(
      ({ signal }) => signal === null && this.#processes.delete(started),
      () => this.#processes.delete(started),
    );
    return started;
  }

  /** Runs the CLI and returns its result, whatever the exit code. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<CliResult> {
    const { timeoutMs = defaultTimeoutMs, ...start } = options;
    const started = await this.spawn(args, start);
    const timer = new AbortController();
    const timeout = sleep(timeoutMs, 'timeout' as const, { signal: timer.signal }).catch(() => 'stopped' as const);
    try {
      const first = await Promise.race([started.done, timeout]);
      if (typeof first === 'string')
        throw new CliError(`timed out after ${timeoutMs} ms`, args, await started.killAll());
      return first;
    } finally {
      timer.abort();
    }
  }

  /** Throws CliError unless the CLI exits with 0. */
  async runOk(args: readonly string[], options: RunOptions = {}): Promise<CliResult> {
    const result = await this.run(args, options);
    if (result.exitCode !== 0) throw new CliError(`exited with ${result.signal ?? result.exitCode}`, args, result);
    return result;
  }

  /** Default: the selected stack. */
  async exportState(options: RunOptions & { stack?: string; showSecrets?: boolean } = {}): Promise<ExportedState> {
    const { stack, showSecrets = false, ...run } = options;
    const args = ['stack', 'export'];
    if (stack !== undefined) args.push('--stack', stack);
    if (showSecrets) args.push('--show-secrets');
    return JSON.parse((await this.runOk(args, run)).stdout) as ExportedState;
  }

  /** Kills running processes and removes the workspace. */
  async dispose(): Promise<void> {
    this.#disposed = true;
    const remaining = [...this.#processes];
    await killSession(remaining.map((each) => each.pid));
    await Promise.allSettled(remaining.map((each) => each.done));
    await rm(this.dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  /** For `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }

  /** Does not inherit the caller's environment: its PULUMI_* and CI variables would change the CLI's behavior. */
  #environment(binDir: string, changes: Record<string, string | undefined>): Record<string, string> {
    const own: Record<string, string | undefined> = {
      PATH: [binDir, '/usr/local/bin', '/usr/bin', '/bin'].join(delimiter),
      HOME: this.dir,
      LANG: 'C.UTF-8',
      NO_COLOR: '1',
      PULUMI_HOME: join(this.dir, 'pulumi-home'),
      PULUMI_BACKEND_URL: this.#options.backendUrl ?? `file://${this.stateDir}`,
      PULUMI_ACCESS_TOKEN: this.#options.accessToken,
      PULUMI_CONFIG_PASSPHRASE: 'holdfast-e2e',
      PULUMI_SKIP_UPDATE_CHECK: 'true',
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: 'true',
      HOLDFAST_TEST_CLOUD: this.cloud.dir,
      // Without this, garbage collection takes a quarter of the CLI's time.
      GOGC: '400',
    };
    for (const name of inherited) own[name] = process.env[name];
    const entries = Object.entries({ ...own, ...this.#options.env, ...changes });
    return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
  }
}
