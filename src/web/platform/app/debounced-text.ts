import { type RefObject, useEffect, useRef, useState } from 'react';
import { hasPopup, isTyping } from './is-typing.ts';

/**
 * Text of a field that is applied once the user pauses for `pauseMs`. `value` is the trimmed text in the URL; the field follows if the URL
 * changes by other means, such as "back". `read` returns the part of the field's text to apply.
 */
export function useDebouncedText(
  value: string,
  onPause: (text: string) => void,
  pauseMs = 250,
  read = (draft: string): string => draft.trim(),
) {
  const [draft, setDraft] = useState(value);
  const [seen, setSeen] = useState(value);
  const [applied, setApplied] = useState<string | null>(null);
  const typed = read(draft);
  if (value !== seen) {
    setSeen(value);
    setApplied(null);
    // A user who continues to type keeps the typed text.
    if (value !== typed && value !== applied) setDraft(value);
  }
  const newest = useRef(onPause);
  newest.current = onPause;
  // Frequent rendering of the page, for example during an update, does not delay it.
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => {
      setApplied(typed);
      newest.current(typed);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [pauseMs, typed, value]);
  return [draft, setDraft] as const;
}

/** The key / moves the focus to the field. */
export function useSlashKey(field: RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { altKey, ctrlKey, key, metaKey, target } = event;
      if (key !== '/' || ctrlKey || metaKey || altKey || isTyping(target) || hasPopup()) return;
      event.preventDefault();
      field.current?.select();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [field]);
}
