import type { AppContext } from '../../shared/context.ts';
import { createAttemptRepository } from '../../shared/identity/attempt-repository.ts';
import { createInvitationRepository } from '../../shared/identity/invitation-repository.ts';
import { createProviderRepository } from '../../shared/identity/provider-repository.ts';
import { createSessionRepository } from '../../shared/identity/session-repository.ts';
import { createSignInLinkRepository } from '../../shared/identity/sign-in-link-repository.ts';
import { createSignInPaceRepository } from '../../shared/identity/sign-in-pace-repository.ts';

export async function deleteEndedSignIns({ config, db }: Pick<AppContext, 'config' | 'db'>): Promise<void> {
  const sessions = createSessionRepository(db, config.sessions);
  await sessions.deleteEnded();
  await sessions.deleteExpiredTokens();
  await createSignInLinkRepository(db).deleteExpired();
  await createProviderRepository(db).deleteEndedFlows();
  await createInvitationRepository(db).deleteEnded();
  await createAttemptRepository(db).deleteOld();
  await createSignInPaceRepository(db).deleteOld();
}
