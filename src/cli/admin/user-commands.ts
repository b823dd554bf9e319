import type { Command } from 'commander';
import { assertPasswordAllowed } from '../../shared/identity/password-rules.ts';
import { hashPassword } from '../../shared/platform/crypto/password-hash.ts';
import type { OpenSession } from './admin-session.ts';
import { findUser, orRefused, refused } from './people-rules.ts';
import { changeAction, type Work } from './people-transaction.ts';
import { readPassword } from './read-password.ts';

/** Adds the commands about how users sign in with a browser. */
export function addUserCommands(admin: Command, open: OpenSession): void {
  const user = admin.command('user').description('manage how users sign in with a browser');
  user
    .command('set-password')
    .description(
      'set the password of a user, asked for at a terminal, otherwise read from standard input; ends all sessions of the user',
    )
    .argument('<login>')
    .action(async (...given: [string, object, Command]) => {
      const [login] = given;
      const password = await readPassword();
      orRefused(() => assertPasswordAllowed(login, password));
      const hash = await hashPassword(password);
      await changeAction(open, 'password.set', (work: Work, _login: string, _options: object) =>
        setPassword(work, login, hash),
      )(...given);
    });
  user
    .command('remove-password')
    .description('remove the password of a user, who then cannot sign in with one; ends all sessions of the user')
    .argument('<login>')
    .action(changeAction(open, 'password.remove', removePassword));
  user
    .command('link')
    .description('let a person at the provider of identities sign in as this user')
    .argument('<login>')
    .requiredOption('--issuer <issuer>', 'HOLDFAST_OIDC_ISSUER, as the provider writes it')
    .requiredOption('--subject <subject>', 'the claim "sub" of the person')
    .action(changeAction(open, 'user.link', link));
  user
    .command('sign-out')
    .description('end all sessions of a user; tokens stay valid')
    .argument('<login>')
    .action(changeAction(open, 'session.end', signOut));
}

async function setPassword({ passwords, people, say, sessions }: Work, login: string, hash: string): Promise<void> {
  const user = await findUser(people, login);
  await passwords.set(user.id, hash);
  await sessions.removeAll(user.id);
  say(`User ${user.login} has a new password${user.isActive ? '' : ', but is deactivated'}.`);
}

async function removePassword({ passwords, people, say, sessions }: Work, login: string): Promise<void> {
  const user = await findUser(people, login);
  const isRemoved = await passwords.remove(user.id);
  await sessions.removeAll(user.id);
  say(isRemoved ? `User ${user.login} has no password any more.` : `User ${user.login} has no password.`);
}

async function link(
  { people, providers, say, unchanged }: Work,
  login: string,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): Promise<void> {
  const user = await findUser(people, login);
  if (!(await providers.insertIdentity(user.id, issuer, subject))) {
    const present = await providers.findIdentity(issuer, subject);
    if (present?.userId !== user.id) throw refused(`this person is linked to user ${present?.login} already`);
    unchanged();
  }
  say(`User ${user.login} is linked to ${subject} of ${issuer}.`);
}

async function signOut({ people, say, sessions }: Work, login: string): Promise<void> {
  const user = await findUser(people, login);
  const ended = await sessions.removeAll(user.id);
  say(`${ended} sessions of user ${user.login} have ended.`);
}
