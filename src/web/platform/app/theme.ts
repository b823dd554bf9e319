import { useSyncExternalStore } from 'react';

export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

/** Also read by public/theme.js, before the first paint. */
const key = 'holdfast.theme';
const listeners = new Set<() => void>();

/** The chosen theme. */
export function readTheme(): Theme {
  const { theme } = document.documentElement.dataset;
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

/** Chooses a theme, for this browser. */
export function chooseTheme(theme: Theme): void {
  apply(theme);
  try {
    localStorage.setItem(key, theme);
  } catch {
    // Storage may be disabled; the choice then lasts until the user leaves the page.
  }
  for (const listener of listeners) listener();
}

function apply(theme: string | null): void {
  const { dataset } = document.documentElement;
  if (theme === 'light' || theme === 'dark') dataset['theme'] = theme;
  else delete dataset['theme'];
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    // Another tab changed it.
    const onStorage = ({ key: changed, newValue }: StorageEvent): void => {
      if (changed !== key) return;
      apply(newValue);
      listener();
    };
    addEventListener('storage', onStorage);
    return () => {
      listeners.delete(listener);
      removeEventListener('storage', onStorage);
    };
  }, readTheme);
}
