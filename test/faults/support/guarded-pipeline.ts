import { randomBytes } from 'node:crypto';
import { RawClient, ResponseError, type Update } from '../../../bench/support/raw-client.ts';
import { beginning, creation } from '../../support/journal-entries.ts';
import { JournalPipeline, type Target } from './pipelines.ts';

const limited = /deletes or replaces at most 0/;
const drained = /drains this update/;
/** Longer than a clock is set ahead, so that an approval ends only with the test. */
const approvedMinutes = 7 * 24 * 60;

/** The messages of rules to the updates of this pipeline. */
export interface VerifierStatistics {
  stopped: number;
  approved: number;
  drained: number;
}

/** The two entries of a resource that is created. */
interface Creation {
  readonly name: string;
  readonly begin: object;
  readonly success: object;
}

/**
 * Sends journals to a stack of which nothing may be deleted without an approval. Each round is stopped by that rule, gets the approval of
 * somebody else, and then goes through; after that an update is drained. What has finished beside a refused step must be kept.
 */
export class GuardedPipeline extends JournalPipeline {
  readonly notified: VerifierStatistics = { stopped: 0, approved: 0, drained: 0 };
  readonly #reviewer: RawClient;
  #name = 0;
  #sequence = 1;

  constructor(target: Target, name: string) {
    super(target, name, 1);
    this.#reviewer = new RawClient(target.url, target.reviewerToken);
  }

  protected override async createStack(): Promise<string> {
    const path = await super.createStack();
    const { organization } = this.target;
    const rule = { kind: 'change-limit', project: this.project, stack: this.name, settings: { changes: 0 } };
    await this.client.call('POST', `/api/orgs/${organization}/update-rules`, rule);
    return path;
  }

  protected override async once(): Promise<void> {
    const commit = randomBytes(20).toString('hex');
    const stopped = await this.#begin(commit);
    await this.#add(stopped);
    await this.#endBesideDelete(stopped, await this.#open(stopped), limited);
    this.notified.stopped++;
    await this.client.complete(stopped, 'failed');

    await this.#approve(commit);
    const approved = await this.#begin(commit);
    await this.#endBesideDelete(approved, await this.#open(approved), null);
    this.notified.approved++;
    await this.client.complete(approved);

    const ended = await this.#begin(commit);
    const open = await this.#open(ended);
    await this.client.call('POST', `${ended.path}/drain`, { reason: 'shift ends' });
    await this.#endBesideDelete(ended, open, drained);
    this.notified.drained++;
    await this.client.complete(ended, 'failed');
  }

  async #begin(commit: string): Promise<Update> {
    this.#sequence = 1;
    const metadata = { message: '', environment: { 'git.head': commit, 'git.dirty': 'false' } };
    const { updateID } = JSON.parse(await this.client.once('POST', `${this.stackPath}/update`, { metadata })) as {
      updateID: string;
    };
    const path = `${this.stackPath}/update/${updateID}`;
    const started = JSON.parse(await this.client.once('POST', path, { journalVersion: 1 })) as {
      token: string;
      version: number;
    };
    return { id: updateID, path, lease: `update-token ${started.token}`, version: started.version };
  }

  #creation(): Creation {
    const name = `g${++this.#name}`;
    const [begin, success] = creation(this.#sequence, name, { project: this.project, stack: this.name });
    this.#sequence += 2;
    this.ledger.attempted.add(name);
    return { name, begin, success };
  }

  #append(update: Update, entries: readonly object[]): Promise<string> {
    const options = { auth: update.lease, gzip: true };
    return this.client.call('PATCH', `${update.path}/journalentries`, { entries }, options);
  }

  async #add(update: Update): Promise<void> {
    const { begin, name, success } = this.#creation();
    await this.#append(update, [begin, success]);
    this.#acknowledge(name);
  }

  async #open(update: Update): Promise<Creation> {
    const created = this.#creation();
    await this.#append(update, [created.begin]);
    return created;
  }

  /** The creation ends while a delete is about to begin. `refusal`: what is said to that; null: it is let go. */
  async #endBesideDelete(update: Update, { name, success }: Creation, refusal: RegExp | null): Promise<void> {
    const urn = `urn:pulumi:${this.name}::${this.project}::pulumi:index:Stash::g1`;
    const operation = { type: 'deleting', resource: { urn, type: 'pulumi:index:Stash', custom: true } };
    const sequence = this.#sequence++;
    const error = await this.#append(update, [success, beginning(sequence, sequence, operation)]).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    const isRefused = error instanceof ResponseError && error.status === 403 && refusal?.test(error.message);
    if (error !== null && !isRefused) throw error;
    this.#acknowledge(name);
    if (error !== null) return;
    if (refusal !== null)
      this.counts.wrongAnswers.push(`${this.name}: a delete was let go that ${refusal} should have refused`);
    // It did not happen after all.
    const none = { removeOld: null, removeNew: null };
    await this.#append(update, [{ version: 1, kind: 2, sequenceID: this.#sequence++, operationID: sequence, ...none }]);
  }

  #acknowledge(name: string): void {
    this.ledger.acknowledged.add(name);
    this.counts.acknowledged++;
  }

  async #approve(commit: string): Promise<void> {
    const { approvals } = JSON.parse(await this.client.call('GET', `${this.stackPath}/approvals`)) as {
      approvals: { id: string; commit: string }[];
    };
    const asked = approvals.find((approval) => approval.commit === commit);
    if (!asked) throw new Error(`no approval of ${commit} was asked for`);
    const given = { reason: 'reviewed', minutes: approvedMinutes };
    await this.#reviewer.call('POST', `${this.stackPath}/approvals/${asked.id}`, given);
  }
}
