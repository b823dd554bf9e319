import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { DriftView } from '../drift/drift-view.tsx';
import { type CiView, ciPeriods, parseCiSearch } from '../platform/app/ci-search.ts';
import { every, trpc } from '../platform/app/trpc.ts';
import { ViewsButton } from '../platform/app/views/views-button.tsx';
import { Page } from '../platform/ui/page.tsx';
import { Tab, Tabs } from '../platform/ui/tabs.tsx';
import { QueueView } from '../updates/queue/queue-view.tsx';
import styles from './ci-page.module.css';
import { DeliveryView } from './delivery-view.tsx';
import { RefusalsView } from './refusals-view.tsx';
import { RunsView } from './runs-view.tsx';
import { ciTexts } from './texts.ts';

const route = getRouteApi('/$organization/~/ci');
const refreshMs = 60_000;

const views: readonly (readonly [CiView, string])[] = [
  ['queue', ciTexts.queue],
  ['runs', ciTexts.runs],
  ['refusals', ciTexts.refused],
  ['drift', ciTexts.drift],
  ['delivery', ciTexts.delivery],
];

export function CiPage() {
  const { organization } = route.useParams();
  const search = route.useSearch();
  const { days = 7, view = 'queue' } = search;
  useEffect(() => {
    document.title = ciTexts.documentTitle(organization);
  }, [organization]);
  // Loaded even if hidden, because the other views are one click away.
  const statistics = useQuery(
    trpc.ci.statistics.queryOptions(
      { organization, days },
      { refetchInterval: every(refreshMs), staleTime: refreshMs / 2 },
    ),
  );
  const refused = statistics.data?.refusals.reduce((sum, { times }) => sum + times, 0);
  return (
    <Page
      title={ciTexts.title}
      lead={ciTexts.lead}
      actions={
        <>
          <ViewsButton page="ci" search={parseCiSearch(search)} />
          {view === 'queue' ? null : <Period days={days} />}
        </>
      }
    >
      <Tabs label={ciTexts.views}>
        {views.map(([name, text]) => (
          <Tab
            key={name}
            to="."
            search={(before) => ({ ...before, view: name === 'queue' ? undefined : name })}
            isChosen={name === view}
            count={name === 'refusals' ? refused : undefined}
          >
            {text}
          </Tab>
        ))}
      </Tabs>
      {view === 'queue' ? <QueueView organization={organization} /> : null}
      {view === 'runs' ? <RunsView organization={organization} days={days} statistics={statistics} /> : null}
      {view === 'refusals' ? (
        <RefusalsView
          organization={organization}
          days={days}
          statistics={statistics.data}
          isCounting={statistics.isPending && statistics.failureCount === 0}
        />
      ) : null}
      {view === 'drift' ? <DriftView organization={organization} days={days} /> : null}
      {view === 'delivery' ? <DeliveryView organization={organization} days={days} /> : null}
    </Page>
  );
}

function Period({ days }: { readonly days: number }) {
  return (
    <nav className={styles['period']} aria-label={ciTexts.period}>
      {ciPeriods.map((each) => (
        <Link
          key={each}
          to="."
          search={(before) => ({ ...before, days: each === 7 ? undefined : each })}
          className={styles['days']}
          activeOptions={{ exact: true }}
          activeProps={{}}
          aria-current={each === days ? 'true' : undefined}
        >
          {ciTexts.days(each)}
        </Link>
      ))}
    </nav>
  );
}
