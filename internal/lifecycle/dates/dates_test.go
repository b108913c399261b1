package dates_test

import (
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/lifecycle/dates"
)

// at is a Tuesday.
var at = time.Date(2026, 3, 10, 15, 0, 0, 0, time.UTC)

func TestAbsolute(t *testing.T) {
	for text, want := range map[string]string{
		"done yesterday, due tomorrow":           "done 2026-03-09, due 2026-03-11",
		"Today we decided":                       "2026-03-10 we decided",
		"the day after tomorrow":                 "2026-03-12",
		"last Tuesday":                           "2026-03-03",
		"last Monday":                            "2026-03-09",
		"next Tuesday":                           "2026-03-17",
		"by next Friday":                         "by 2026-03-13",
		"this Sunday":                            "2026-03-15",
		"on Thursday":                            "on Thursday",
		"release in two weeks":                   "release on 2026-03-24",
		"3 days ago it broke":                    "on 2026-03-07 it broke",
		"a month from now":                       "on 2026-04-10",
		"next week and last month":               "the week of 2026-03-16 and February 2026",
		"this year":                              "2026",
		"in 10 minutes":                          "in 10 minutes",
		"in order":                               "in order",
		"昨天部署失败":                                 "2026-03-09部署失败",
		"明天上线，后天复盘":                              "2026-03-11上线，2026-03-12复盘",
		"大前天":                                    "2026-03-07",
		"上周三的会":                                  "2026-03-04的会",
		"下周五前完成":                                 "2026-03-20前完成",
		"本周日":                                    "2026-03-15",
		"下星期天":                                   "2026-03-22",
		"上周的事故":                                  "2026-03-02 那一周的事故",
		"下个月发布":                                  "2026年4月发布",
		"两周后冻结":                                  "2026-03-24冻结",
		"三天前":                                    "2026-03-07",
		"十五天后":                                   "2026-03-25",
		"二十一天之后":                                 "2026-03-31",
		"3个月以后":                                  "2026-06-10",
		"下周末":                                    "下周末",
		"`yesterday` stays, tomorrow `tomorrow`": "`yesterday` stays, 2026-03-11 `tomorrow`",
		"```\nyesterday\n```\nyesterday":         "```\nyesterday\n```\n2026-03-09",
		"no date at all":                         "no date at all",
		"":                                       "",
	} {
		if got := dates.Absolute(text, at); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		once := dates.Absolute(text, at)
		if again := dates.Absolute(once, at.AddDate(0, 0, 30)); again != once {
			t.Errorf("%q is not at rest: %q", once, again)
		}
	}
	if got := dates.Absolute("yesterday", time.Time{}); got != "yesterday" {
		t.Errorf("without a time: %q", got)
	}
	// The last day of a month, and over the end of a year.
	if got := dates.Absolute("next month", time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)); got != "February 2026" {
		t.Errorf("from 31 January: %s", got)
	}
	if got := dates.Absolute("下个月", time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)); got != "2027年1月" {
		t.Errorf("from 31 December: %s", got)
	}
}

func FuzzAbsolute(f *testing.F) {
	f.Add("next Tuesday 下周三 `x")
	f.Fuzz(func(t *testing.T, text string) {
		once := dates.Absolute(text, at)
		if again := dates.Absolute(once, at); again != once && dates.Absolute(again, at) != again {
			t.Fatalf("%q never comes to rest", text)
		}
	})
}
