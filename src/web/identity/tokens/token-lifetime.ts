import { useQuery } from '@tanstack/react-query';
import { trpc } from '../../platform/app/trpc.ts';
import { lifetimeTexts } from '../texts.tsx';
import type { TokenOwner } from './token-owner.ts';

export const daySeconds = 86_400;
const lives = [
  ['7', lifetimeTexts.days(7)],
  ['30', lifetimeTexts.days(30)],
  ['90', lifetimeTexts.days(90)],
  ['365', lifetimeTexts.year],
] as const;
const defaultDays = 90;

/** If the organization has a maximum, the shorter lifetimes and the maximum; otherwise all, and no expiry. */
export function lifetimesWithin(maxSeconds: number | null): readonly (readonly [string, string])[] {
  if (maxSeconds === null) return [...lives, ['0', lifetimeTexts.never]];
  const most = Math.floor(maxSeconds / daySeconds);
  const shorter = lives.filter(([days]) => Number(days) < most);
  // The server limits the longest lifetime to the maximum, to the second.
  return [...shorter, ['0', most >= 1 ? lifetimeTexts.longest(most) : lifetimeTexts.longestAllowed]];
}

/** 90 days, or fewer if 90 are not allowed. */
export function usualDays(maxSeconds: number | null): string {
  return maxSeconds !== null && maxSeconds / daySeconds <= defaultDays ? '0' : String(defaultDays);
}

/** Null: no limit; undefined until it is known. */
export function useMaxSeconds(owner: TokenOwner): number | null | undefined {
  const { of, ...names } = owner;
  const options = { retry: false };
  const mine = useQuery(trpc.tokens.lifeOfMine.queryOptions(undefined, { ...options, enabled: of === 'me' }));
  const ofTeam = useQuery(
    trpc.tokens.lifeOfTeam.queryOptions(
      { organization: '', team: '', ...names },
      { ...options, enabled: of === 'team' },
    ),
  );
  const ofOrganization = useQuery(
    trpc.tokens.life.queryOptions({ organization: '', ...names }, { ...options, enabled: of === 'organization' }),
  );
  const { data, isError } = { me: mine, team: ofTeam, organization: ofOrganization }[of];
  return isError ? null : data?.maxSeconds;
}
