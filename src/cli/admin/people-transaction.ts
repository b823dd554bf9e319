import type { Command } from 'commander';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { createIdentityRepository, type IdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository, type PeopleRepository } from '../../shared/identity/people-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { describeLoss } from '../../shared/updates/lease.ts';
import { endLostUpdates } from '../../shared/updates/lost-leases.ts';
import type { OpenSession } from './admin-session.ts';
import { operator } from './operator.ts';

/** The transaction of one command. */
export interface Work {
  readonly identity: IdentityRepository;
  readonly people: PeopleRepository;
  /** Prints a line to stdout after the commit. */
  say(line: string): void;
}

/** Runs a command with its arguments, followed by its options. If it throws, nothing is changed. */
type Run<Given extends unknown[]> = (work: Work, ...given: Given) => Promise<void>;

/** Returns the action of a command that reads organizations, users and tokens. */
export function questionAction<Given extends unknown[]>(open: OpenSession, run: Run<Given>) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const withoutCommand = given.slice(0, -1) as Given;
    const lines = await open().withDatabase((db) =>
      runInTransaction(db, (work) => run(work, ...withoutCommand), { locks: false }),
    );
    for (const line of lines) console.log(line);
  };
}

/**
 * Returns the action of a command that changes organizations, users and tokens, in one transaction with their event
 * in the audit log. Updates that lose their lease are cancelled afterwards.
 */
export function changeAction<Given extends unknown[]>(open: OpenSession, action: AuditAction, run: Run<Given>) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const session = open();
    const command = given.at(-1) as Command;
    const withoutCommand = given.slice(0, -1) as Given;
    await session.withDatabase(async (db) => {
      const lines = await runInTransaction(db, (work) => run(work, ...withoutCommand), {
        locks: true,
        action,
        command,
      });
      for (const line of lines) console.log(line);
      const entry = { audit: command.name(), by: operator(), arguments: command.args, ...command.opts() };
      session.logger.warn(entry, 'operator');
      for (const { updateId, reason } of await endLostUpdates(db))
        if (reason !== 'lease-expired') console.log(`Update ${updateId} was cancelled: ${describeLoss(reason)}.`);
    });
  };
}

async function runInTransaction(
  db: Database,
  run: (work: Work) => Promise<void>,
  change: { readonly locks: false } | { readonly locks: true; readonly action: AuditAction; readonly command: Command },
): Promise<readonly string[]> {
  return db.inTransaction(async (tx) => {
    const people = createPeopleRepository(tx);
    if (change.locks) await people.lock();
    const subject = change.locks ? subjectOf(change.command) : null;
    // Before the change, which may end memberships.
    const before = subject ? await organizationsOf(tx, subject) : [];
    // Created in here, because the transaction is retried on a conflict.
    const lines: string[] = [];
    await run({ identity: createIdentityRepository(tx), people, say: (line) => void lines.push(line) });
    if (!change.locks || !subject) return lines;
    const names = new Set([...before, ...(await organizationsOf(tx, subject))]);
    const { action, command } = change;
    const event = {
      action,
      object: subject.object,
      details: { command: command.name(), arguments: command.args, ...command.opts() },
    };
    for (const organization of names.size > 0 ? names : [null])
      await createAuditRepository(tx).insert(operatorSource(operator()), { ...event, organization });
    return lines;
  });
}

interface Subject {
  readonly object: string;
  readonly organization: string | null;
  readonly login: string | null;
}

/** What a command changes: its first argument, in the organization that its options name. */
function subjectOf(command: Command): Subject {
  const { organization, user } = command.opts<{ organization?: string; user?: string }>();
  const object = command.args[0] ?? user ?? '';
  if (command.name() === 'create-organization') return { object, organization: object, login: null };
  return { object, organization: organization ?? null, login: command.name() === 'revoke' ? (user ?? null) : object };
}

/** The organizations in whose audit log a change belongs. */
async function organizationsOf(tx: Queryable, { organization, login }: Subject): Promise<readonly string[]> {
  if (organization !== null) return [organization];
  const identity = createIdentityRepository(tx);
  const user = login === null ? null : await identity.findUser(login);
  return user ? (await identity.listMemberships(user.id)).map(({ name }) => name) : [];
}
