import { CliError, PulumiWorkspace } from '../../../testkit/pulumi-cli.ts';
import { stashProgram } from '../../../testkit/stash-program.ts';
import { pauseFor, type Target } from './pipelines.ts';

const project = 'faults-cli';
const count = 6;
const unattended = ['--yes', '--skip-preview', '--non-interactive'];
/** Short beside a run. */
const pauseMs = 250;

/** The real CLI, which runs round after round on its stack until it is stopped. */
export class CliPipeline {
  readonly name: string;
  /** The last round whose `up` succeeded, and the last one that was started. */
  succeeded = 0;
  begun = 0;
  readonly runs = { begun: 0, succeeded: 0 };
  readonly failures: string[] = [];
  readonly #workspace: PulumiWorkspace;
  readonly #target: Target;
  #stopping = false;
  #disposing = false;
  #run: Promise<void> = Promise.resolve();

  private constructor(name: string, workspace: PulumiWorkspace, target: Target) {
    this.name = name;
    this.#workspace = workspace;
    this.#target = target;
  }

  static async start(target: Target, name: string, env: Record<string, string> = {}): Promise<CliPipeline> {
    const workspace = await PulumiWorkspace.create({ backendUrl: target.url, accessToken: target.token, env });
    const pipeline = new CliPipeline(name, workspace, target);
    try {
      await pipeline.#writeRound(0);
      await workspace.runOk(['stack', 'init', `${target.organization}/${project}/${name}`, '--non-interactive']);
    } catch (error) {
      await workspace.dispose();
      throw error;
    }
    pipeline.#run = pipeline.#loop();
    return pipeline;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#run;
  }

  /** Rounds that the stack's resources come from. */
  async rounds(): Promise<number[]> {
    const { deployment } = await this.#workspace.exportState();
    const stashes = (deployment.resources ?? []).filter(({ type }) => type === 'pulumi:index:Stash');
    return stashes.map((stash) => Number(/round (\d+)/.exec(JSON.stringify(stash['inputs']))?.[1]));
  }

  /** Kills the running CLI, if any, and starts no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    this.#disposing = true;
    await this.#workspace.dispose();
    await this.#run;
  }

  async #loop(): Promise<void> {
    while (!this.#stopping) {
      try {
        const succeeded = await this.#up();
        // As a person would do then; it fails when nothing runs any more.
        if (!succeeded && !this.#disposing) await this.#workspace.run(['cancel', '--yes']);
      } catch (error) {
        this.#note(String(error));
      }
      if (!this.#stopping) await pauseFor(this.#target, pauseMs);
    }
  }

  async #up(): Promise<boolean> {
    const round = ++this.begun;
    this.runs.begun++;
    await this.#writeRound(round);
    const result = await this.#workspace.run(['up', ...unattended]).catch((error: unknown) => {
      // It did not end and was killed; its lease is still valid.
      if (error instanceof CliError) return error.result;
      throw error;
    });
    if (result.exitCode === 0) {
      this.succeeded = round;
      this.runs.succeeded++;
      return true;
    }
    const { exitCode, signal, stderr, stdout } = result;
    this.#note(`up ended with ${signal ?? exitCode}: ${stderr.slice(-1_000)}${stdout.slice(-1_000)}`);
    return false;
  }

  #note(text: string): void {
    if (!this.#disposing) this.failures.push(`${this.name}: ${text}`);
  }

  #writeRound(round: number): Promise<void> {
    return this.#workspace.writeProgram(stashProgram({ project, count, inputOf: (at) => `round ${round} at ${at}` }));
  }
}
