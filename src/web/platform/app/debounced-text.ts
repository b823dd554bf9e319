import { type RefObject, useEffect, useState } from 'react';
import { isTyping } from './is-typing.ts';

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
  if (value !== seen) {
    setSeen(value);
    if (value !== read(draft)) setDraft(value);
  }
  useEffect(() => {
    if (read(draft) === value) return undefined;
    const timer = setTimeout(() => onPause(read(draft)), pauseMs);
    return () => clearTimeout(timer);
  });
  return [draft, setDraft] as const;
}

/** The key / moves the focus to the field. */
export function useSlashKey(field: RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      field.current?.select();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [field]);
}
