import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { Limit } from '../platform/app/procedure-types.ts';
import { StorageGrowth } from '../platform/app/storage-growth.tsx';
import { every, trpc } from '../platform/app/trpc.ts';
import { byteText } from '../platform/ui/byte-text.ts';
import { FactList, FactRow } from '../platform/ui/fact-list.tsx';
import { numberLocale } from '../platform/ui/locale.ts';
import { Page, Section } from '../platform/ui/page.tsx';
import { Skeleton } from '../platform/ui/skeleton.tsx';
import { Time } from '../platform/ui/time.tsx';
import styles from './quotas-page.module.css';
import { limitTexts } from './texts.tsx';

const route = getRouteApi('/$organization/~/limits');
const pollMs = 15_000;

const names: Readonly<Record<Limit['name'], { readonly name: string; readonly about: string }>> = {
  stacks: { name: limitTexts.stacks, about: limitTexts.stacksAbout },
  updates: { name: limitTexts.updates, about: limitTexts.updatesAbout },
  keptBytes: {
    name: limitTexts.stored,
    about: limitTexts.storedAbout,
  },
  inFlightBytes: { name: limitTexts.inFlight, about: limitTexts.inFlightAbout },
  requestsPerSecond: { name: limitTexts.requestsPerSecond, about: limitTexts.requestsPerSecondAbout },
};

/** A newer server may have other limits. */
function about(name: string): { readonly name: string; readonly about: string } {
  return Object.hasOwn(names, name) ? names[name as Limit['name']] : { name, about: '' };
}

/** The limits of the organization, and its usage. */
export function LimitsPage() {
  const { organization } = route.useParams();
  const query = useQuery(trpc.limits.get.queryOptions({ organization }, { refetchInterval: every(pollMs) }));
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  const limits = query.data;
  return (
    <Page title={limitTexts.title} lead={limitTexts.lead}>
      {limits === undefined ? (
        <div className={styles['list']} aria-busy="true">
          {[48, 32, 56, 40].map((width) => (
            <Skeleton key={width} width={`${width}%`} height={20} />
          ))}
        </div>
      ) : (
        <>
          <dl className={styles['list']}>
            {limits.items.map((limit) => (
              <LimitRow key={limit.name} limit={limit} measuredAt={limits.measuredAt} />
            ))}
          </dl>
          <StorageGrowth title={limitTexts.byDay} days={limits.days} />
          <Section title={limitTexts.requests} lead={limitTexts.requestsLead}>
            <FactList>
              <FactRow name={limitTexts.withToken}>{perMinute(limits.requestsPerMinute.token)}</FactRow>
              <FactRow name={limitTexts.byUser}>{perMinute(limits.requestsPerMinute.user)}</FactRow>
              <FactRow name={limitTexts.fromAddress}>{perMinute(limits.requestsPerMinute.address)}</FactRow>
            </FactList>
          </Section>
        </>
      )}
    </Page>
  );
}

function LimitRow({
  limit: { limit, name, used },
  measuredAt,
}: {
  readonly limit: Limit;
  readonly measuredAt: string | null;
}) {
  const isBytes = name === 'keptBytes' || name === 'inFlightBytes';
  const show = isBytes ? byteText : (value: number) => value.toLocaleString(numberLocale);
  const share = limit === null || used === null ? null : Math.min(1, used / limit);
  const id = `limit-${name}`;
  return (
    <div className={styles['row']}>
      <dt className={styles['name']}>
        <span id={id}>{about(name).name}</span>
        <span className={styles['about']}>{about(name).about}</span>
      </dt>
      <dd className={styles['value']}>
        <span className={styles['numbers']}>
          {used === null ? name === 'requestsPerSecond' ? '' : limitTexts.notMeasured : <b>{show(used)}</b>}
          {limit === null ? (
            <span className={styles['about']}>{limitTexts.noLimit}</span>
          ) : (
            <span>{used === null ? limitTexts.atMost(show(limit)) : limitTexts.of(show(limit))}</span>
          )}
          {share !== null && share >= 0.8 ? (
            <span className={share >= 1 ? styles['full'] : styles['near']}>
              {share >= 1 ? limitTexts.reached : limitTexts.used(Math.floor(share * 100))}
            </span>
          ) : null}
          {name === 'keptBytes' && measuredAt !== null ? (
            <span className={styles['about']}>{limitTexts.measured(<Time at={measuredAt} />)}</span>
          ) : null}
        </span>
        {share === null ? null : (
          <meter className={styles['meter']} aria-labelledby={id} min={0} max={1} high={0.8} value={share} />
        )}
      </dd>
    </div>
  );
}

function perMinute(limit: number | null): string {
  return limit === null ? limitTexts.noLimit : limitTexts.perMinute(limit);
}
