import type { AppContext } from '../../shared/context.ts';
import { createTokenRepository } from '../../shared/identity/token-repository.ts';
import { untilNoneLeft } from '../platform/until-none-left.ts';

/** How long personal tokens and CI tokens stay after their end. */
const tokenDays = 30;
/** Tokens of teams and organizations stay longer, because the history shows their names. */
const namedTokenDays = 400;
const tokensAtOnce = 500;

/** The audit log keeps their names. */
export async function deleteEndedTokens({ db }: Pick<AppContext, 'db'>, signal: AbortSignal): Promise<number> {
  const tokens = createTokenRepository(db);
  const days = { ofOthers: tokenDays, named: namedTokenDays };
  return untilNoneLeft(tokensAtOnce, signal, (limit) => tokens.deleteEnded(days, limit));
}
