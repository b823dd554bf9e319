import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Lock, SearchX } from 'lucide-react';
import { useEffect } from 'react';
import { errorCode } from '../platform/app/api-error.ts';
import type { FoundResource } from '../platform/app/contract.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import { shortType } from '../platform/app/resource-name.ts';
import { trpc } from '../platform/app/trpc.ts';
import { Button } from '../platform/ui/button.tsx';
import { Empty } from '../platform/ui/empty.tsx';
import { Page } from '../platform/ui/page.tsx';
import { type Column, Table } from '../platform/ui/table.tsx';
import { Tab, Tabs } from '../platform/ui/tabs.tsx';
import { Time } from '../platform/ui/time.tsx';
import { ProviderVersions } from './provider-versions.tsx';
import { SearchField } from './search-field.tsx';
import { SearchGroups } from './search-groups.tsx';
import styles from './search-page.module.css';
import { addTerm, type Within } from './search-terms.ts';

const pageSize = 50;

const examples = [
  ['type:aws:s3/* -protect:true', 'Unprotected S3 resources'],
  ['provider:aws version:<6', 'Resources still managed by an old major version of a provider'],
  ['tag:env=prod changed:<7d', 'Resources changed in production this week'],
  ['stack:shop/* orders', 'A word in the resources of one project'],
] as const;

const fieldHelp = [
  ['type: name: urn:', 'the exact value, or * for any characters'],
  ['provider: version:', 'of the provider: 6, 6.1.2, <6, >=6.1, 6.1..6.4'],
  ['stack: project: tag:', 'prod, web/prod, acme/web/*; env or env=prod'],
  ['protect: custom: external: deleted:', 'true or false'],
  ['changed:', 'the last change: <7d, >30d, >1y'],
  ['parent:', 'URN, name or type of the parent'],
  ['-', 'in front of a term: all others'],
  ['word', 'the beginning of a word in type or name'],
] as const;

/** Searches the resources of all stacks, or of the stacks of the organization in the path. */
export function SearchPage() {
  const { organization } = useParams({ strict: false });
  const { q = '', view } = useSearch({ strict: false });
  const within = organization === undefined ? {} : { organization };
  useEffect(() => {
    document.title = 'Search - Holdfast';
  }, []);
  return (
    <Page
      title={organization === undefined ? 'Search' : `Search ${organization}`}
      lead="Resources of the newest state of every stack that you may read. Updates appear after some seconds."
    >
      <SearchField key={organization} />
      <Tabs label="What is searched">
        <Tab to="." search={(before: object) => ({ ...before, view: undefined })} isChosen={view === undefined}>
          Resources
        </Tab>
        <Tab to="." search={(before: object) => ({ ...before, view: 'providers' })} isChosen={view === 'providers'}>
          Provider versions
        </Tab>
      </Tabs>
      {view === 'providers' ? (
        <ProviderVersions within={within} />
      ) : q === '' ? (
        <Help />
      ) : (
        <div className={styles['columns']}>
          <SearchGroups query={q} within={within} />
          <Results query={q} within={within} />
        </div>
      )}
    </Page>
  );
}

const columns: readonly Column<FoundResource>[] = [
  {
    name: 'Resource',
    isTitle: true,
    cell: (item) => (
      <div className={styles['resource']}>
        <Link
          to="/$organization/$project/$stack"
          params={{ organization: item.organization, project: item.project, stack: item.stack }}
          search={{ tab: 'resources', urn: item.urn }}
          title={item.urn}
        >
          {item.name}
        </Link>
        <span className={styles['type']} title={item.type}>
          {shortType(item.type)}
          {item.protect ? (
            <span className={styles['protected']} title="Protected: it cannot be deleted">
              <Lock size={12} aria-hidden="true" /> protected
            </span>
          ) : null}
          {item.isDeleted ? <span className={styles['protected']}>to be deleted</span> : null}
        </span>
      </div>
    ),
  },
  {
    name: 'Stack',
    cell: (item) => <StackLink item={item} />,
  },
  {
    name: 'Provider',
    isMinor: true,
    cell: ({ provider, providerVersion }) => (
      <span className={styles['provider']}>
        {provider} {providerVersion}
      </span>
    ),
  },
  {
    name: 'Changed',
    align: 'right',
    cell: ({ changedAt }) => (changedAt === null ? null : <Time at={changedAt} />),
  },
];

function StackLink({ item }: { readonly item: FoundResource }) {
  const within = useParams({ strict: false }).organization;
  const { organization, project, stack } = item;
  return (
    <Link
      to="/$organization/$project/$stack"
      params={{ organization, project, stack }}
      className={styles['stack']}
      title={`${organization}/${project}/${stack}`}
    >
      {within === undefined ? <span className={styles['organization']}>{organization}/</span> : null}
      {project}/{stack}
    </Link>
  );
}

function Results({ query: text, within }: { readonly query: string; readonly within: Within }) {
  const query = useInfiniteQuery(
    trpc.search.list.infiniteQueryOptions(
      { query: text, ...within, limit: pageSize },
      { getNextPageParam: ({ next }) => next, placeholderData: keepPreviousData, refetchOnWindowFocus: false },
    ),
  );
  const items = query.data?.pages.flatMap((page) => page.items);
  const last = query.data?.pages.at(-1);
  const more = () => void query.fetchNextPage();
  const problem = useProblem(query);
  // The field shows the error of the query.
  if (errorCode(problem?.error) === 'BAD_REQUEST') return null;
  if (problem) return <Problem {...problem} />;
  return (
    <div className={styles['results']}>
      {query.isFetching && errorCode(query.failureReason) === 'TOO_MANY_REQUESTS' ? (
        <p className={styles['wait']} role="status">
          You have exceeded the search rate of the server. This search is retried automatically.
        </p>
      ) : null}
      <Table
        label="Resources"
        columns={columns}
        items={items}
        keyOf={(item) => `${item.organization}/${item.urn} ${item.isDeleted}`}
        hasMore={query.hasNextPage && last?.isCut !== true}
        isBusy={query.isFetching}
        onMore={more}
        empty={
          last?.isCut ? null : (
            <Empty title="Nothing matches" icon={<SearchX size={20} />}>
              <p>All terms must match. Remove one, or add * where a value may continue.</p>
            </Empty>
          )
        }
      />
      {last?.isCut ? (
        <div className={styles['cut']} role="status">
          <p>
            This search took too long and stopped after some of the stacks. There may be more results. A type, a name or
            a project makes it faster.
          </p>
          <Button disabled={query.isFetching} onClick={more}>
            {query.isFetching ? 'Searching…' : 'Continue searching'}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function Help() {
  const navigate = useNavigate();
  return (
    <div className={styles['help']}>
      <section>
        <h2>Try one</h2>
        <ul className={styles['examples']}>
          {examples.map(([text, meaning]) => (
            <li key={text}>
              <button
                type="button"
                onClick={() =>
                  void navigate({ to: '.', search: (before: object) => ({ ...before, q: addTerm('', text) }) })
                }
              >
                <code>{text}</code>
                <span>{meaning}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
      <section>
        <h2>Fields</h2>
        <dl className={styles['fields']}>
          {fieldHelp.map(([names, meaning]) => (
            <div key={names}>
              <dt>
                <code>{names}</code>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
      </section>
    </div>
  );
}
