import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Search } from 'lucide-react';
import { useId, useRef, useState } from 'react';
import { useDebouncedText, useSlashKey } from '../platform/app/debounced-text.ts';
import { positionOf, stepFrom } from '../platform/ui/list-choice.ts';
import { type Suggesting, type Suggestion, useSuggestions } from './stack-suggestions.ts';
import { filteringText, typedTerm } from './stack-terms.ts';
import styles from './stack-text-filter.module.css';
import { stackFilterTexts } from './texts.tsx';

const pauseMs = 250;

/** Suggestions are for the typed term. The arrow keys choose one, Enter takes it. */
export function StackTextFilter({ items }: { readonly items: readonly Suggesting[] }) {
  const { organization } = useParams({ strict: false });
  const { text = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  const apply = (typed: string, part: Readonly<Record<string, string>> = {}): void =>
    void navigate({ to: '.', replace: true, search: (before) => ({ ...before, ...part, text: typed || undefined }) });
  const [draft, setDraft] = useDebouncedText(text, apply, pauseMs, filteringText);
  const [isOpen, setIsOpen] = useState(false);
  const [chosen, setChosen] = useState<string | null>(null);
  useSlashKey(field);
  const term = typedTerm(draft);
  const found = useSuggestions(term, organization, items, isOpen);
  const shown = isOpen ? found : [];
  const values = shown.map(({ value }) => value);
  const at = positionOf(values, chosen, -1);

  const type = (typed: string): void => {
    const [ended = '', space = '', name = '', value = ''] = /(^|\s)(tag|project):(\S+)\s$/i.exec(typed) ?? [];
    const rest = typed.slice(0, typed.length - ended.length) + space;
    setDraft(rest);
    if (name !== '') apply(filteringText(rest), { [name.toLowerCase()]: value });
    setIsOpen(true);
    setChosen(null);
  };
  const take = (value: string): void => {
    if (term.field === null) {
      type(`${term.before}${value}`);
      return;
    }
    if (term.field === 'tag' || term.field === 'project') {
      setDraft(term.before);
      apply(filteringText(term.before), { [term.field]: value });
    } else setDraft(`${term.before}${term.field}:${value} `);
    setIsOpen(false);
  };
  const onKey = (event: React.KeyboardEvent<HTMLInputElement>): void => {
    // The key belongs to an input method.
    if (event.nativeEvent.isComposing) return;
    const step = ({ ArrowDown: 1, ArrowUp: -1 } as const)[event.key];
    if (step !== undefined && shown.length > 0) {
      setChosen(stepFrom(values, at, step));
    } else if (event.key === 'Enter') {
      const value = shown[at]?.value ?? (term.field === null ? '' : term.text);
      if (value !== '') take(value);
    } else if (event.key === 'Escape' && shown.length > 0) setIsOpen(false);
    else if (event.key === 'Escape') {
      setDraft('');
      event.currentTarget.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div className={styles['text']}>
      <Search size={15} aria-hidden="true" />
      <input
        ref={field}
        type="search"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={shown.length > 0}
        aria-controls={id}
        aria-activedescendant={at < 0 ? undefined : `${id}-${at}`}
        value={draft}
        maxLength={200}
        placeholder={stackFilterTexts.projectOrStack}
        aria-label={stackFilterTexts.find}
        aria-keyshortcuts="/"
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        onFocus={() => setIsOpen(true)}
        onBlur={() => setIsOpen(false)}
        onClick={() => setIsOpen(true)}
        onChange={({ target }) => type(target.value)}
        onKeyDown={onKey}
      />
      <span className={styles['key']} aria-hidden="true">
        /
      </span>
      <div
        id={id}
        role="listbox"
        aria-label={stackFilterTexts.suggestions}
        className={styles['list']}
        hidden={shown.length === 0}
      >
        {shown.map(({ hint, value }: Suggestion, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys.
          <div
            key={value}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === at}
            tabIndex={-1}
            className={styles['option']}
            onMouseMove={() => setChosen(value)}
            // The field keeps the focus.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(value)}
          >
            <span className={styles['value']}>{value}</span>
            {hint === undefined ? null : <span className={styles['hint']}>{hint}</span>}
          </div>
        ))}
      </div>
    </div>
  );
}
