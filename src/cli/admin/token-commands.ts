import type { Command } from 'commander';
import { mintToken } from '../../shared/platform/crypto/secret-token.ts';
import type { OpenSession } from './admin-session.ts';
import { findUser, refused } from './people-rules.ts';
import { changeAction, type Work } from './people-transaction.ts';

/** Adds the commands that create and revoke tokens. */
export function addTokenCommands(admin: Command, open: OpenSession): void {
  admin
    .command('create-token')
    .description('create a token and print it')
    .argument('<login>')
    .option('--description <text>', 'purpose of the token')
    .option('--days <days>', 'days until it expires (default: never)')
    .action(changeAction(open, 'token.create', createToken));
  admin
    .command('revoke')
    .description('revoke a token, or all tokens of a user: revoke --user <login>')
    .argument('[token-id]')
    .option('--user <login>', 'revoke all tokens of this user')
    .action(changeAction(open, 'token.revoke', revoke));
}

async function createToken(
  { identity, people, say }: Work,
  login: string,
  { days, description = '' }: { readonly days?: string; readonly description?: string },
): Promise<void> {
  const user = await findUser(people, login);
  if (!user.isActive) throw refused(`user ${user.login} is deactivated: holdfast admin reactivate-user ${user.login}`);
  if (days !== undefined && !/^[1-9]\d{0,4}$/.test(days)) throw refused('--days must be a whole number of days');
  const expiresAt = days === undefined ? null : new Date(Date.now() + Number(days) * 86_400_000);
  const { token, hash } = mintToken('hf-');
  await identity.insertToken({ userId: user.id, hash, description, expiresAt });
  say(token);
}

async function revoke(
  { identity, people, say }: Work,
  id: string | undefined,
  { user: login }: { readonly user?: string },
): Promise<void> {
  if (id !== undefined && login === undefined) {
    if (!/^[0-9a-f-]{36}$/.test(id) || !(await identity.revokeToken(id)))
      throw refused(`there is no valid token with the id ${JSON.stringify(id)}`);
    say('Revoked.');
  } else if (id === undefined && login !== undefined) {
    const user = await findUser(people, login);
    const count = await people.revokeTokens(user.id);
    say(`Revoked ${count} ${count === 1 ? 'token' : 'tokens'} of ${user.login}.`);
  } else {
    throw refused('revoke needs the id of a token, or --user <login>');
  }
}
