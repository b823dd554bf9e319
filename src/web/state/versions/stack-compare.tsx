import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { ArrowRight } from 'lucide-react';
import { useDeferredValue, useEffect, useState } from 'react';
import { Problem, useProblem } from '../../platform/app/problem-pages.tsx';
import type { StackRef } from '../../platform/app/procedure-types.ts';
import type { StackPageSearch } from '../../platform/app/stack-search.ts';
import { stopsUnread, trpc } from '../../platform/app/trpc.ts';
import { Button } from '../../platform/ui/button.tsx';
import { Empty } from '../../platform/ui/empty.tsx';
import { CheckboxField, TextField } from '../../platform/ui/field.tsx';
import { Skeleton } from '../../platform/ui/skeleton.tsx';
import { compareTexts } from '../texts.tsx';
import { type DifferenceLabels, Differences } from './differences.tsx';
import styles from './stack-compare.module.css';

const pageSize = 50;
const maxFound = 8;

/** This stack compared with another one: resources of the same type and name, and their differences. */
export function StackCompare({ search, stack }: { readonly stack: StackRef; readonly search: StackPageSearch }) {
  const navigate = useNavigate();
  const change = (changes: Partial<StackPageSearch>): void =>
    void navigate({ to: '.', search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false });
  const other = parseName(search.other);
  return (
    <section className={styles['compare']} aria-label={compareTexts.comparison}>
      {other === null ? (
        <Picker stack={stack} onPick={(name) => change({ other: name })} />
      ) : (
        <>
          <header className={styles['head']}>
            <h2 className={styles['names']}>
              <span>{shortName(stack)}</span>
              <ArrowRight size={16} aria-label={compareTexts.comparedWith} />
              <span>{other.organization === stack.organization ? shortName(other) : fullName(other)}</span>
            </h2>
            <Button size="small" onClick={() => change({ other: undefined, secrets: undefined })}>
              {compareTexts.changeStack}
            </Button>
          </header>
          <Comparison stack={stack} other={other} search={search} onChange={change} />
        </>
      )}
    </section>
  );
}

function Picker({ onPick, stack }: { readonly stack: StackRef; readonly onPick: (name: string) => void }) {
  const [typed, setTyped] = useState(`${stack.project}/`);
  const text = useDeferredValue(typed.trim());
  const query = useQuery(
    trpc.stacks.list.queryOptions(
      { ...(text === '' ? {} : { text }), limit: maxFound + 1 },
      { placeholderData: (former) => former },
    ),
  );
  const problem = useProblem(query);
  const found = (query.data?.items ?? []).filter((each) => fullName(each) !== fullName(stack)).slice(0, maxFound);
  const [first] = found;
  const firstName = first === undefined ? null : fullName(first);
  // The previous results may belong to other words: a choice waits for the answer to the typed text.
  const [isChosen, setIsChosen] = useState(false);
  const isAnswered = text === typed.trim() && query.data !== undefined && !query.isPlaceholderData;
  useEffect(() => {
    if (!isChosen || !isAnswered) return;
    setIsChosen(false);
    if (firstName !== null) onPick(firstName);
  }, [firstName, isAnswered, isChosen, onPick]);
  return (
    <div className={styles['picker']}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setIsChosen(true);
        }}
      >
        <TextField
          autoFocus
          label={compareTexts.compareWith}
          type="search"
          hint={compareTexts.partOfName}
          value={typed}
          onChange={({ target }) => {
            setTyped(target.value);
            setIsChosen(false);
          }}
        />
      </form>
      {problem ? <Problem {...problem} /> : query.isPending ? <Skeleton width="40%" /> : null}
      {found.length === 0 && query.isSuccess ? (
        <Empty title={compareTexts.noMatch}>
          <p>{compareTexts.noMatchHint}</p>
        </Empty>
      ) : (
        <ul className={styles['found']} aria-label={compareTexts.stacks}>
          {found.map((each) => (
            <li key={fullName(each)}>
              <button type="button" onClick={() => onPick(fullName(each))}>
                <span className={styles['name']}>
                  <span className={styles['project']}>{each.project}/</span>
                  {each.stack}
                </span>
                <span className={styles['about']}>
                  {compareTexts.versionOf(
                    each.version,
                    each.organization === stack.organization ? null : each.organization,
                  )}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Comparison({
  onChange,
  other,
  search,
  stack,
}: {
  readonly stack: StackRef;
  readonly other: StackRef;
  readonly search: StackPageSearch;
  readonly onChange: (changes: Partial<StackPageSearch>) => void;
}) {
  const { organization, project, stack: name } = stack;
  const options = {
    ...(search.outputs === undefined ? {} : { outputs: true }),
    ...(search.secrets === undefined ? {} : { secrets: true }),
  };
  const query = useInfiniteQuery(
    trpc.versions.diffStacks.infiniteQueryOptions(
      { organization, project, stack: name, other, limit: pageSize, ...options },
      {
        ...stopsUnread,
        getNextPageParam: (page) => page.next,
        // With secrets, the audit log records each read: a refresh of the page does not repeat it, a return to the page reads the newest
        // versions.
        ...(search.secrets === undefined ? {} : { staleTime: 'static', gcTime: 0 }),
      },
    ),
  );
  const problem = useProblem(query);
  if (problem) return <Problem {...problem} />;
  if (query.data === undefined) return <Skeleton width="50%" />;
  const [first] = query.data.pages;
  if (first === undefined) return null;
  const items = query.data.pages.flatMap((page) => page.items);

  return (
    <>
      <div className={styles['options']}>
        <CheckboxField
          label={compareTexts.compareOutputs}
          checked={search.outputs !== undefined}
          onChange={({ target }) => onChange({ outputs: target.checked ? '1' : undefined })}
        />
        {first.mayCompareSecrets ? (
          <CheckboxField
            label={compareTexts.secrets}
            hint={compareTexts.secretsHint}
            checked={search.secrets !== undefined}
            onChange={({ target }) => onChange({ secrets: target.checked ? '1' : undefined })}
          />
        ) : null}
      </div>
      <p className={styles['facts']}>{compareTexts.summary({ ...first, stack: name, other: other.stack })}</p>
      {items.length === 0 ? (
        <Empty title={compareTexts.none}>
          <p>{compareTexts.notCompared(search.outputs !== undefined)}</p>
        </Empty>
      ) : (
        <Differences items={items} labels={labelsOf(stack, other)} />
      )}
      {query.hasNextPage ? (
        <Button disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
          {compareTexts.more}
        </Button>
      ) : null}
    </>
  );
}

function labelsOf(stack: StackRef, other: StackRef): DifferenceLabels {
  const isSameName = stack.stack === other.stack;
  const [one, two] = isSameName ? [shortName(stack), shortName(other)] : [stack.stack, other.stack];
  return {
    changes: {
      created: compareTexts.onlyIn(two),
      deleted: compareTexts.onlyIn(one),
      updated: compareTexts.inBoth,
      replaced: compareTexts.inBoth,
    },
    before: one,
    after: two,
  };
}

function fullName({ organization, project, stack }: StackRef): string {
  return `${organization}/${project}/${stack}`;
}

function shortName({ project, stack }: StackRef): string {
  return `${project}/${stack}`;
}

function parseName(name: string | undefined): StackRef | null {
  const [organization = '', project = '', stack = '', ...more] = (name ?? '').split('/');
  return organization === '' || project === '' || stack === '' || more.length > 0
    ? null
    : { organization, project, stack };
}
