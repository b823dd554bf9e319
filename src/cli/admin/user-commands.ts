import { type Command, InvalidArgumentError } from 'commander';
import { assertPasswordAllowed } from '../../shared/identity/password-rules.ts';
import { signInLink } from '../../shared/identity/sign-in-link.ts';
import { createSignInLinkRepository } from '../../shared/identity/sign-in-link-repository.ts';
import { hashPassword } from '../../shared/platform/crypto/password-hash.ts';
import { jsonOption } from '../output/outputs.ts';
import { counted } from '../output/text.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, type Work } from './audited-action.ts';
import { findUser, orRefused, refused } from './people-rules.ts';
import { readPassword } from './read-password.ts';
import { addUserTokenCommand } from './token-commands.ts';

interface Reset {
  readonly removePasskeys?: true;
}

function parseHours(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > 168)
    throw new InvalidArgumentError('It must be a whole number from 1 to 168.');
  return Number(text);
}

const removePasskeysOption = ['--remove-passkeys', 'also remove the passkeys of the user'] as const;

export function addUserCommands(admin: Command, open: OpenSession): void {
  const user = admin.command('user').description('create tokens of users, and manage how they sign in with a browser');
  addUserTokenCommand(user, open);
  user
    .command('set-password')
    .description(
      'set the password of a user (asked for at a terminal, otherwise read from standard input), and end all sessions of the user',
    )
    .argument('<login>')
    .option(...removePasskeysOption)
    .action(async (...given: [string, Reset, Command]) => {
      const [login] = given;
      const password = await readPassword();
      orRefused(() => assertPasswordAllowed(login, password));
      const hash = await hashPassword(password);
      await changeAction(open, 'password.set', (work: Work, _login: string, options: Reset) =>
        setPassword(work, login, { ...options, hash }),
      )(...given);
    });
  user
    .command('remove-password')
    .description('remove the password of a user, and end all sessions of the user')
    .argument('<login>')
    .option(...removePasskeysOption)
    .action(changeAction(open, 'password.remove', removePassword));
  user
    .command('link')
    .description('let an account of the identity provider sign in as this user')
    .argument('<login>')
    .requiredOption('--issuer <issuer>', 'HOLDFAST_OIDC_ISSUER, exactly as the provider sends it')
    .requiredOption('--subject <subject>', 'the claim "sub" of the account')
    .action(changeAction(open, 'user.link', link));
  user
    .command('sign-in-link')
    .description('print a link by which a user signs in with a browser once, for example to set the first password')
    .argument('<login>')
    .option('--hours <hours>', 'how long it works: 1 (default) to 168', parseHours, 1)
    .option(...jsonOption)
    .action(async (...given: [string, { readonly hours: number }, Command]) => {
      const { publicUrl } = open().config;
      await changeAction(open, 'sign-in-link.create', async ({ people, result, tx }, login: string, { hours }) => {
        const found = await findUser(people, login);
        if (!found.isActive) throw refused(`user ${found.login} is deactivated`);
        const { expiresAt, secret } = await createSignInLinkRepository(tx).insert(found.id, hours * 3600);
        const link = signInLink(publicUrl, secret);
        result('admin user sign-in-link', { login: found.login, link, expiresAt }, [
          link,
          `Opens the web UI as ${found.login}, once, until ${expiresAt.toISOString().slice(0, 16)}Z.`,
        ]);
      })(...(given as [string, { readonly hours: number }, Command]));
    });
  user
    .command('sign-out')
    .description('end all sessions of a user; tokens stay valid')
    .argument('<login>')
    .action(changeAction(open, 'session.end', signOut));
}

async function setPassword(
  work: Work,
  login: string,
  { hash, ...options }: Reset & { readonly hash: string },
): Promise<void> {
  const user = await findUser(work.people, login);
  const removed = await removePasskeys(work, user, options);
  // Before the password is set: its trigger also ends the sessions, but does not count them.
  const ended = await work.sessions.removeAll(user.id);
  await work.passwords.set(user.id, hash);
  work.say(`User ${user.login} has a new password${user.isActive ? '' : ', but is deactivated'}.`);
  await sayOtherWays(work, user, { ended, removed });
}

async function removePassword(work: Work, login: string, options: Reset): Promise<void> {
  const user = await findUser(work.people, login);
  const removed = await removePasskeys(work, user, options);
  const ended = await work.sessions.removeAll(user.id);
  const isRemoved = await work.passwords.remove(user.id);
  work.say(isRemoved ? `User ${user.login} no longer has a password.` : `User ${user.login} has no password.`);
  await sayOtherWays(work, user, { ended, removed });
}

/** Call before the sessions are ended, because a passkey could begin a session meanwhile. Null: the passkeys are kept. */
async function removePasskeys(
  { passkeys }: Work,
  { id }: { readonly id: string },
  options: Reset,
): Promise<number | null> {
  return options.removePasskeys ? passkeys.removeAll(id) : null;
}

/** A reset often follows a theft. */
async function sayOtherWays(
  { passkeys, people, say }: Work,
  user: { readonly id: string; readonly login: string },
  { ended, removed }: { readonly ended: number; readonly removed: number | null },
): Promise<void> {
  say(ended === 0 ? 'There was no session to end.' : `${counted(ended, 'session')} ended.`);
  if (removed !== null) say(`${counted(removed, 'passkey')} removed.`);
  else {
    const names = (await passkeys.list(user.id)).map(({ name }) => JSON.stringify(name));
    if (names.length > 0)
      say(
        `${counted(names.length, 'passkey')} can still sign in (${names.join(', ')}); --remove-passkeys removes them.`,
      );
  }
  const tokens = (await people.listTokens(user.login)).filter(
    ({ expiresAt }) => expiresAt === null || expiresAt.getTime() > Date.now(),
  ).length;
  if (tokens > 0)
    say(`Still valid: ${counted(tokens, 'access token')} of the user; holdfast admin revoke --user ${user.login}`);
}

async function link(
  { people, providers, say, unchanged }: Work,
  login: string,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): Promise<void> {
  const user = await findUser(people, login);
  if (!(await providers.insertIdentity(user.id, issuer, subject))) {
    const present = await providers.findIdentity(issuer, subject);
    if (present?.userId !== user.id) throw refused(`this account is already linked to user ${present?.login}`);
    unchanged();
  }
  say(`User ${user.login} is linked to ${subject} of ${issuer}.`);
}

async function signOut({ people, say, sessions }: Work, login: string): Promise<void> {
  const user = await findUser(people, login);
  const ended = await sessions.removeAll(user.id);
  say(`${ended} sessions of user ${user.login} have ended.`);
}
