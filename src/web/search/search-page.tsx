import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Lock, SearchX } from 'lucide-react';
import { useEffect } from 'react';
import { errorCode } from '../platform/app/api-error.ts';
import { Problem, useProblem } from '../platform/app/problem-pages.tsx';
import type { FoundResource } from '../platform/app/procedure-types.ts';
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
import { searchTexts } from './texts.tsx';

const pageSize = 50;

const examples = [
  ['type:aws:s3/* -protect:true', searchTexts.unprotectedExample],
  ['provider:aws version:<6', searchTexts.providerExample],
  ['tag:env=prod changed:<7d', searchTexts.changedExample],
  ['stack:shop/* orders', searchTexts.wordExample],
] as const;

const fieldHelp = [
  ['type: name: urn:', searchTexts.nameHelp],
  ['provider: version:', searchTexts.providerHelp],
  ['stack: project: tag:', searchTexts.stackHelp],
  ['protect: custom: external: deleted:', searchTexts.booleanHelp],
  ['changed:', searchTexts.changedHelp],
  ['parent:', searchTexts.parentHelp],
  ['-', searchTexts.notHelp],
  ['word', searchTexts.wordHelp],
] as const;

/** Searches the resources of all stacks, or of the stacks of the organization in the path. */
export function SearchPage() {
  const { organization } = useParams({ strict: false });
  const { q = '', view } = useSearch({ strict: false });
  const within = organization === undefined ? {} : { organization };
  useEffect(() => {
    document.title = searchTexts.documentTitle;
  }, []);
  return (
    <Page
      title={organization === undefined ? searchTexts.title : searchTexts.titleOf(organization)}
      lead={searchTexts.lead}
    >
      <SearchField key={organization} />
      <Tabs label={searchTexts.searchIn}>
        <Tab to="." search={(before: object) => ({ ...before, view: undefined })} isChosen={view === undefined}>
          {searchTexts.resources}
        </Tab>
        <Tab to="." search={(before: object) => ({ ...before, view: 'providers' })} isChosen={view === 'providers'}>
          {searchTexts.providerVersions}
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
    name: searchTexts.resource,
    isTitle: true,
    cell: (item) => (
      <div className={styles['resource']}>
        <Link
          to="/$organization/$project/$stack"
          params={{ organization: item.organization, project: item.project, stack: item.stack }}
          // Its URN leads to its replacement.
          search={{ tab: 'resources', ...(item.isDeleted ? { text: item.name } : { urn: item.urn }) }}
          title={item.urn}
        >
          {item.name}
        </Link>
        <span className={styles['type']} title={item.type}>
          {shortType(item.type)}
          {item.protect ? (
            <span className={styles['protected']} title={searchTexts.protectedHint}>
              <Lock size={12} aria-hidden="true" /> {searchTexts.protected}
            </span>
          ) : null}
          {item.isDeleted ? <span className={styles['protected']}>{searchTexts.toBeDeleted}</span> : null}
        </span>
      </div>
    ),
  },
  {
    name: searchTexts.stack,
    cell: (item) => <StackLink item={item} />,
  },
  {
    name: searchTexts.provider,
    cell: ({ provider, providerVersion }) => (
      <span className={styles['provider']}>
        {provider} {providerVersion}
      </span>
    ),
  },
  {
    name: searchTexts.changed,
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
      <p className={styles['wait']} role="status">
        {query.isFetching && errorCode(query.failureReason) === 'TOO_MANY_REQUESTS' ? searchTexts.rateExceeded : null}
      </p>
      <Table
        label={searchTexts.resources}
        columns={columns}
        items={items}
        // A state may contain a resource several times, pending deletion.
        keyOf={({ isDeleted, organization, project, stack, urn }, at) =>
          `${organization}/${project}/${stack} ${urn} ${isDeleted ? at : ''}`
        }
        hasMore={query.hasNextPage && last?.isCut !== true}
        isBusy={query.isFetching}
        onMore={more}
        empty={
          last?.isCut ? null : (
            <Empty title={searchTexts.nothingMatches} icon={<SearchX size={20} />}>
              <p>{searchTexts.nothingMatchesHint}</p>
            </Empty>
          )
        }
      />
      {last?.isCut ? (
        <div className={styles['cut']} role="status">
          <p>{searchTexts.cut}</p>
          <Button disabled={query.isFetching} onClick={more}>
            {query.isFetching ? searchTexts.searching : searchTexts.continueSearching}
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
        <h2>{searchTexts.tryOne}</h2>
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
        <h2>{searchTexts.fields}</h2>
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
