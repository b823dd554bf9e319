import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { CircleAlert, LoaderCircle, Search, Snowflake, Unplug, Waves, X } from 'lucide-react';
import { useId, useMemo, useRef, useState } from 'react';
import type { StackItem } from '../platform/app/contract.ts';
import { useDebouncedText, useSlashKey } from '../platform/app/debounced-text.ts';
import type { StackStatus } from './stack-filter.ts';
import styles from './stack-filter-bar.module.css';
import { StackListTools } from './stack-list-tools.tsx';

const maxSuggestions = 100;

const statuses = [
  { status: undefined, name: 'All', icon: null },
  { status: 'running', name: 'Running', icon: <LoaderCircle aria-hidden="true" /> },
  { status: 'failed', name: 'Failed', icon: <CircleAlert aria-hidden="true" /> },
  { status: 'interrupted', name: 'Interrupted', icon: <Unplug aria-hidden="true" /> },
  { status: 'drifted', name: 'Drifted', icon: <Waves aria-hidden="true" /> },
  { status: 'frozen', name: 'Frozen', icon: <Snowflake aria-hidden="true" /> },
] as const satisfies readonly { status: StackStatus | undefined; name: string; icon: unknown }[];

/** The filter above the list. It is in the URL, so that it can be shared. */
export function StackFilterBar({ items }: { readonly items: readonly Pick<StackItem, 'tags'>[] }) {
  const search = useSearch({ strict: false });
  return (
    <search className={styles['bar']}>
      <TextFilter />
      <nav className={styles['statuses']} aria-label="Status">
        {statuses.map(({ icon, name, status }) => (
          <Link
            key={name}
            to="."
            search={(before) => ({ ...before, status })}
            className={styles['status']}
            activeOptions={{ exact: true }}
            activeProps={{}}
            aria-current={search.status === status ? 'true' : undefined}
          >
            {icon}
            {name}
          </Link>
        ))}
      </nav>
      <Chip name="project" value={search.project} />
      {search.tag === undefined ? <TagFilter items={items} /> : <Chip name="tag" value={search.tag} />}
      <StackListTools />
    </search>
  );
}

function TextFilter() {
  const { text = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const field = useRef<HTMLInputElement>(null);
  const apply = (typed: string): void =>
    void navigate({ to: '.', replace: true, search: (before) => ({ ...before, text: typed || undefined }) });
  const [draft, setDraft] = useDebouncedText(text, apply);
  useSlashKey(field);
  return (
    <div className={styles['text']}>
      <Search size={15} aria-hidden="true" />
      <input
        ref={field}
        type="search"
        value={draft}
        maxLength={200}
        placeholder="Project or stack"
        title="Words in the name; owner: the user who holds the lock; updated: an age, such as <7d or >1y"
        aria-label="Find a project or stack"
        aria-keyshortcuts="/"
        spellCheck={false}
        autoComplete="off"
        onChange={({ target }) => setDraft(target.value)}
        onKeyDown={({ key, currentTarget }) => {
          if (key !== 'Escape') return;
          setDraft('');
          currentTarget.blur();
        }}
      />
      <span className={styles['key']} aria-hidden="true">
        /
      </span>
    </div>
  );
}

/** A tag to filter by. Tags of the listed stacks are suggested. */
function TagFilter({ items }: { readonly items: readonly Pick<StackItem, 'tags'>[] }) {
  const navigate = useNavigate();
  const id = useId();
  const [draft, setDraft] = useState('');
  const suggestions = useMemo(() => {
    const tags = items.flatMap((item) => Object.entries(item.tags).map(([name, value]) => `${name}=${value}`));
    return [...new Set(tags)].sort().slice(0, maxSuggestions);
  }, [items]);
  const apply = (tag: string): void =>
    void navigate({ to: '.', search: (before) => ({ ...before, tag: tag.trim() || undefined }) });
  return (
    <form
      className={styles['tag']}
      onSubmit={(event) => {
        event.preventDefault();
        apply(draft);
      }}
    >
      <input
        value={draft}
        list={id}
        maxLength={400}
        placeholder="Tag"
        aria-label="Filter by a tag: name or name=value"
        spellCheck={false}
        autoComplete="off"
        onChange={({ target }) => {
          setDraft(target.value);
          // A chosen suggestion, not typed text.
          if (suggestions.includes(target.value)) apply(target.value);
        }}
      />
      <datalist id={id}>
        {suggestions.map((tag) => (
          <option key={tag} value={tag} />
        ))}
      </datalist>
    </form>
  );
}

/** A removable part of the filter that came from another page. */
function Chip({ name, value }: { readonly name: 'project' | 'tag'; readonly value: string | undefined }) {
  if (value === undefined) return null;
  return (
    <Link
      to="."
      search={(before) => ({ ...before, [name]: undefined })}
      activeOptions={{ exact: true }}
      className={styles['chip']}
      activeProps={{}}
      aria-label={`Remove the filter ${name} ${value}`}
    >
      <span className={styles['chipName']}>{name}</span>
      <span className={styles['chipValue']}>{value}</span>
      <X size={13} aria-hidden="true" />
    </Link>
  );
}
