import { type RefObject, useEffect, useRef, useState } from 'react';
import { hasPopup, isTyping } from './is-typing.ts';

/**
 * Text of a field that is applied once the user pauses, in milliseconds. `value`: the trimmed text in the URL. The field
 * follows when the URL changes by other means, such as "back". `read`: what of the field is applied.
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
    // Somebody who types on meanwhile keeps what was typed.
    if (value !== typed && value !== applied) setDraft(value);
  }
  const newest = useRef(onPause);
  newest.current = onPause;
  // A page that is drawn often, such as that of a running update, does not put it off.
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
