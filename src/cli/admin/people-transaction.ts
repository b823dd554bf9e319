import type { Command } from 'commander';
import { createIdentityRepository, type IdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository, type PeopleRepository } from '../../shared/identity/people-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { describeLoss } from '../../shared/updates/lease.ts';
import { endLostUpdates } from '../../shared/updates/lost-leases.ts';
import type { OpenSession } from './admin-session.ts';
import { operator } from './operator.ts';

/** What a command works with: one transaction. */
export interface Work {
  readonly identity: IdentityRepository;
  readonly people: PeopleRepository;
  /** Goes to stdout once all is committed. */
  say(sentence: string): void;
}

/** What a command does with its arguments and, after them, its options. When it throws, nothing is changed. */
type Run<Given extends unknown[]> = (work: Work, ...given: Given) => Promise<void>;

/** The action of a command that reads organizations, users and tokens. */
export function questionAction<Given extends unknown[]>(open: OpenSession, run: Run<Given>) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const withoutCommand = given.slice(0, -1) as Given;
    const sentences = await open().withDatabase((db) =>
      runInTransaction(db, (work) => run(work, ...withoutCommand), { locks: false }),
    );
    for (const sentence of sentences) console.log(sentence);
  };
}

/**
 * The action of a command that changes organizations, users and tokens: one transaction, one line in the audit log. Updates that
 * lost their lease by it are cancelled afterwards.
 */
export function changeAction<Given extends unknown[]>(open: OpenSession, run: Run<Given>) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const session = open();
    const command = given.at(-1) as Command;
    const withoutCommand = given.slice(0, -1) as Given;
    await session.withDatabase(async (db) => {
      const sentences = await runInTransaction(db, (work) => run(work, ...withoutCommand), { locks: true });
      for (const sentence of sentences) console.log(sentence);
      const line = { audit: command.name(), by: operator(), arguments: command.args, ...command.opts() };
      session.logger.warn(line, 'operator');
      for (const { updateId, reason } of await endLostUpdates(db))
        if (reason !== 'lease-expired') console.log(`Update ${updateId} was cancelled: ${describeLoss(reason)}.`);
    });
  };
}

async function runInTransaction(
  db: Database,
  run: (work: Work) => Promise<void>,
  { locks }: { locks: boolean },
): Promise<readonly string[]> {
  return db.inTransaction(async (tx) => {
    const people = createPeopleRepository(tx);
    if (locks) await people.lock();
    // Here, since the transaction is run again when Postgres asks for that.
    const sentences: string[] = [];
    await run({ identity: createIdentityRepository(tx), people, say: (sentence) => void sentences.push(sentence) });
    return sentences;
  });
}
