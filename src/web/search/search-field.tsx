import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Search } from 'lucide-react';
import { useRef } from 'react';
import { errorCode, errorSpan } from '../platform/app/api-error.ts';
import { useDebouncedText, useSlashKey } from '../platform/app/debounced-text.ts';
import { trpc } from '../platform/app/trpc.ts';
import styles from './search-field.module.css';
import { Answer } from './search-summary.tsx';
import type { Within } from './search-terms.ts';
import { searchFieldTexts } from './texts.tsx';

const typingMs = 400;

/** The query. It is in the URL, so that it can be shared. */
export function SearchField() {
  const { organization } = useParams({ strict: false });
  const { q = '', view } = useSearch({ strict: false });
  const navigate = useNavigate();
  const field = useRef<HTMLInputElement>(null);
  const apply = (text: string): void =>
    void navigate({
      to: '.',
      replace: true,
      search: (before: object) => ({
        ...before,
        q: text || undefined,
        view: text === '' ? view : undefined,
      }),
    });
  const [draft, setDraft] = useDebouncedText(q, apply, typingMs);
  useSlashKey(field);
  const within = organization === undefined ? {} : { organization };
  return (
    <search className={styles['search']}>
      <form
        className={styles['field']}
        onSubmit={(event) => {
          event.preventDefault();
          apply(draft.trim());
        }}
      >
        <Search size={18} aria-hidden="true" />
        <input
          ref={field}
          type="search"
          value={draft}
          maxLength={1_000}
          placeholder={searchFieldTexts.example}
          aria-label={searchFieldTexts.searchResources}
          aria-keyshortcuts="/"
          aria-describedby="search-problem"
          spellCheck={false}
          autoComplete="off"
          autoCapitalize="off"
          onChange={({ target }) => setDraft(target.value)}
        />
      </form>
      {view === undefined ? (
        <>
          <QueryProblem query={q} within={within} />
          <Answer query={q} within={within} />
        </>
      ) : null}
    </search>
  );
}

/** Shows a syntax error, and its position. */
function QueryProblem({ query, within }: { readonly query: string; readonly within: Within }) {
  const { error } = useQuery(
    trpc.search.count.queryOptions(
      { query, ...within, by: 'type' },
      { placeholderData: keepPreviousData, refetchOnWindowFocus: false, enabled: query !== '' },
    ),
  );
  const span = error && errorSpan(error);
  // The results show other errors.
  if (!error || errorCode(error) !== 'BAD_REQUEST' || query === '') return null;
  return (
    <div id="search-problem" className={styles['problem']} role="alert">
      {span ? (
        <code>
          {query.slice(0, span.start)}
          <mark>{query.slice(span.start, span.end) || ' '}</mark>
          {query.slice(span.end)}
        </code>
      ) : null}
      <p>{error.message.replace(/^The query is invalid at character \d+: /, '')}</p>
    </div>
  );
}
