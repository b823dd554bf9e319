import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import type { AuditEvent, AuditSource } from '../../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../../shared/audit/audit-repository.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { UnavailableError } from '../../../shared/platform/errors/errors.ts';
import type { ReadOnlyMode } from '../../../shared/platform/read-only/read-only-mode.ts';
import { assertActionOfRun } from './ci-runs.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on routes whose `config.audit` is an action. */
    audit: AuditTrail;
  }
}

export class UnrecordedReadError extends UnavailableError {
  override readonly name = 'UnrecordedReadError';
  override readonly code = 'read-not-recorded';
}

/**
 * Before a route with an action responds with success, it must record the action or call `settle`. Otherwise the plugin turns the response
 * into an error.
 */
export class AuditTrail {
  #source: AuditSource;
  #action: AuditAction;
  readonly #readOnly: ReadOnlyMode;
  #isSettled = false;

  constructor(source: AuditSource, action: AuditAction, readOnly: ReadOnlyMode) {
    this.#source = source;
    this.#action = action;
    this.#readOnly = readOnly;
  }

  get source(): AuditSource {
    return this.#source;
  }

  /** Sets the user who signed in with this request. */
  identify(who: Pick<AuditSource, 'userId' | 'login' | 'signIn'>): void {
    this.#source = { ...this.#source, ...who };
  }

  get action(): AuditAction {
    return this.#action;
  }

  /** Sets the action of the call, if it depends on the body. */
  attempt(action: AuditAction): void {
    this.#action = action;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Call in the transaction of the change. The action of the route is the default. */
  async record(tx: Queryable, event: Omit<AuditEvent, 'action'> & { readonly action?: AuditAction }): Promise<void> {
    await this.recordAs(tx, {}, event);
  }

  /** Like `record`, for a user who signs in with this request. */
  async recordAs(
    tx: Queryable,
    who: Partial<AuditSource>,
    event: Omit<AuditEvent, 'action'> & { readonly action?: AuditAction },
  ): Promise<void> {
    const source = { ...this.source, ...who };
    const recorded = { action: this.#action, ...event };
    // An action that CI runs may not take is never committed for a CI run, whatever the call.
    if (source.signIn === 'id-token') assertActionOfRun(recorded.action);
    await createAuditRepository(tx).insert(source, recorded);
    this.#isSettled = true;
  }

  /**
   * Like `record`, by a statement that also makes the change. `isRecorded`: whether the event is recorded, or there was nothing to record.
   */
  async recordWith<T>(
    statement: (source: AuditSource, action: AuditAction) => Promise<T>,
    isRecorded: (result: T) => boolean,
  ): Promise<T> {
    const result = await statement(this.source, this.#action);
    if (isRecorded(result)) this.#isSettled = true;
    return result;
  }

  /**
   * Call before the first byte of the response. Throws UnavailableError if the event cannot be committed, and ReadOnlyError once another
   * site has taken over.
   */
  async recordRead(db: Queryable, event: Omit<AuditEvent, 'action'>): Promise<void> {
    this.#readOnly.assertNotFenced();
    await this.#whileRead(this.record(db, event));
  }

  /** The read is counted for the caller's running update, or recorded as an event of its own. */
  async recordSecretRead(
    db: Queryable,
    read: {
      readonly stackIds: readonly string[];
      readonly organization: string;
      readonly object: string;
      readonly values: number;
      readonly names: readonly string[];
      readonly details?: Readonly<Record<string, unknown>>;
    },
  ): Promise<void> {
    const { details, names, object, organization, values } = read;
    this.#readOnly.assertNotFenced();
    await this.#whileRead(
      (async () => {
        const updateId = await createAuditRepository(db).countSecretRead(this.source, read);
        if (updateId !== null) return this.settle();
        await this.record(db, { organization, object, details: details ?? { values, names } });
      })(),
    );
  }

  /** Call if the worker that commits the change records the event, or if nothing was changed. */
  settle(): void {
    this.#isSettled = true;
  }

  async #whileRead(recorded: Promise<void>): Promise<void> {
    await recorded.catch((cause: unknown) => {
      throw new UnrecordedReadError(
        'This read could not be recorded in the audit log, so it was refused; please retry',
        {
          cause,
        },
      );
    });
  }
}
